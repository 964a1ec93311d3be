// From what /v1/explain answers to what the page shows: picks in their order, and what was passed over.

export function explanationOf({ selection, passages }) {
  const { query, words, certificate, is_repetitive } = selection;
  const all = selection.passages.map((report, index) => ({ ...report, passage: passages[index] }));
  const coveredAfter = (count) => words.reduce((sum, word) => sum + word.weight * (word.covered[count] ?? 0), 0);
  const selected = selection.selected.map(({ index }, place) => {
    const one = all[index];
    return {
      ...one,
      covered: coveredAfter(place + 1),
      is_pinned: one.reason === "pinned",
      runner_up_gain: one.runner_up === null ? 0 : all[one.runner_up].gains[place],
    };
  });
  const most = ({ gains }) => Math.max(0, ...gains);
  const passed = all.filter((one) => one.gain === null).sort((a, b) => most(b) - most(a));
  return { query, words, certificate, is_repetitive, selected, passed, length_counts: all.some((one) => one.tokens !== null) };
}
