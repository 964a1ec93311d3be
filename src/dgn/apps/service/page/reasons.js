// What the page says about a sentence and about the set, in words.

const MOST_ROUNDS = 5; // that are told one by one

export const percent = (share) => `${Math.round(100 * share)}%`;

// Rounded down: a certificate must not promise more than it proves.
const floored = (share) => `${(Math.floor(1000 * share) / 10).toFixed(1)}%`;

// The pick that has covered most of a word in the first rounds, from 1; 0 if none has.
export function pickOf(covered, rounds) {
  let most = 0;
  let largest = 0;
  for (let pick = 1; pick <= rounds; pick += 1) {
    const added = covered[pick] - covered[pick - 1];
    if (added > largest) [most, largest] = [pick, added];
  }
  return most;
}

// What a pick covers further: content words.
export function coverLines({ covers, passage }, explanation) {
  const content = new Set(explanation.words.filter((one) => one.is_content).map((one) => one.word));
  const hasMore = passage.title || passage.position !== null;
  const sources = [
    ["text", "It covers"],
    ["title", "By its title it covers"],
    ["similar", `${hasMore ? "It, its title or its neighbours say" : "It says"} something similar to`],
  ];
  return sources.map(([source, opening]) => {
    const words = covers.filter((one) => one.source === source && content.has(one.word));
    const parts = words.map((one) => {
      const before = one.before >= 0.005 ? `${percent(one.before)} → ` : "";
      const near = one.near ? ` (near ${one.near}, ${one.similarity.toFixed(2)})` : "";
      return `${one.word} ${before}${percent(one.after)}${near}`;
    });
    return parts.length ? `${opening} ${parts.join(", ")}.` : "";
  }).filter(Boolean);
}

// A sentence by its first words: its number is not shown in the text.
export function named(index, explanation) {
  const { selected, passed } = explanation;
  const { text } = [...selected, ...passed].find((one) => one.index === index).passage;
  const words = text.split(/\s+/).slice(0, 7).join(" ");
  return `“${words.slice(0, 60)}${words.length < text.length ? "…" : ""}”`;
}

// To which pick a sentence is similar, and which sentences it stands for.
function similarLines({ similar_to, similarity, stands_for }, explanation) {
  const lines = [];
  if (similar_to !== null) lines.push(`Similar to ${named(similar_to, explanation)} (${similarity.toFixed(2)}).`);
  if (stands_for.length) {
    const more = stands_for.length - 1;
    lines.push(`It stands for ${named(stands_for[0], explanation)}${more ? ` and ${more} more` : ""} (similarity above .8).`);
  }
  return lines;
}

export function whyTaken(one, round, explanation) {
  const lines = [`Pick ${round}: it adds ${one.gain.toFixed(2)}, the most of all in round ${round}.`];
  if (one.is_pinned) {
    lines[0] = `Pick ${round}: it is pinned, and adds ${one.gain.toFixed(2)}.`;
  } else if (explanation.length_counts) {
    lines[0] = `Pick ${round}: it adds ${one.gain.toFixed(2)}. With a token limit, the length of a `
      + "sentence counts a little, too.";
  } else if (one.runner_up !== null) {
    lines.push(`The next best was ${named(one.runner_up, explanation)} with ${one.runner_up_gain.toFixed(2)}.`);
  }
  const covers = coverLines(one, explanation);
  const nothing = round > 1 && one.gain >= 0.005
    ? "It covers no further word of the query: it repeats words that are covered already, or says something similar."
    : "It contains no content word of the query.";
  lines.push(...(covers.length ? covers : [nothing]), ...similarLines(one, explanation));
  return lines;
}

export function whyNot(one, explanation) {
  if (one.reason === "irrelevant") {
    return ["Left out before the search: by itself it covers less of the query than the limit."];
  }
  if (one.reason === "repeats") return [`It repeats ${named(one.like, explanation)} and took no part in the search.`];
  const lines = explanation.selected.slice(0, MOST_ROUNDS).map((taken, place) => {
    const own = one.gains[place].toFixed(2);
    return `Round ${place + 1}: it would have added ${own}; ${named(taken.index, explanation)} was taken `
      + `and added ${taken.gain.toFixed(2)}.`;
  });
  lines.unshift("Not taken.");
  const more = explanation.selected.length - MOST_ROUNDS;
  if (more > 0) lines.push(`The other ${more} round${more > 1 ? "s" : ""} went the same way.`);
  if (explanation.length_counts) lines.push("With a token limit, the length of a sentence counts a little, too.");
  lines.push(...similarLines(one, explanation));
  if (one.like === null) lines.push("It hardly mentions the query.");
  else lines.push(`${percent(one.overlap)} of what it covers is covered by ${named(one.like, explanation)}, too.`);
  return lines;
}

export function certificateText(explanation) {
  const count = explanation.selected.length;
  if (!count) return "Nothing was selected.";
  const among = explanation.length_counts ? "within the token limit" : `of ${count} sentence${count > 1 ? "s" : ""}`;
  const best = explanation.certificate >= 1
    ? `No other set ${among} has a higher score: this one is proved to be the best.`
    : `The score of this set is at least ${floored(explanation.certificate)} of the best that any `
      + `set ${among} can reach. This is proved for this query, not estimated.`;
  return `${best} It is a statement about the model's score: it does not say that the sentences are `
    + "true, or that they support the claim.";
}
