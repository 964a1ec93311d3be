// The answer on the screen: the words of the query, the bars and the picks, round by round, and other methods.

import { certificateText, percent, pickOf } from "/page/reasons.js";
import { at, colourOf, listen, made, markPicks, showText } from "/page/text.js";

const MOST_BARS = 40;
const PLAY_MS = 1300;

let answer = null;
let round = 0; // so many picks are shown
let playing = null;

// Shows what /v1/explain and /v1/compare answered.
export function show(found) {
  stopPlaying();
  const { selected, passed } = found.explanation;
  answer = found;
  answer.sentences = [...selected, ...passed].sort((a, b) => a.index - b.index);
  answer.order = new Map(selected.map((one, place) => [one.index, place + 1]));
  answer.byIndex = new Map(answer.sentences.map((one) => [one.index, one]));
  at("round").max = selected.length;
  showWords();
  showText(answer);
  showGains();
  showMethods();
  at("certificate").textContent = certificateText(found.explanation);
  showRound(selected.length);
}

// --- the words of the query -------------------------------------------------------------------

function showWords() {
  at("words").replaceChildren(...answer.explanation.words.map(({ word, is_content }) => {
    const node = made("span", is_content ? "word" : "word small", word);
    node.dataset.word = word;
    return node;
  }));
}

// A word has the colour of the pick that has covered most of it.
function fillWords() {
  const { words } = answer.explanation;
  [...at("words").children].forEach((node, place) => {
    const { word, covered } = words[place];
    const pick = pickOf(covered, round);
    const share = covered[round] ?? 0;
    node.classList.remove(...[...node.classList].filter((name) => name.startsWith("pick-")));
    if (pick) node.classList.add(colourOf(pick));
    node.style.setProperty("--share", `${100 * share}%`);
    node.title = `${word}: ${percent(share)} covered`;
  });
}

// A pick under the mouse shows the words of the query that it covers.
function light(index) {
  const place = index === null ? undefined : answer.order.get(index);
  const covers = place ? answer.explanation.selected[place - 1].covers : [];
  const words = new Set(covers.map((one) => one.word));
  for (const node of at("words").children) node.classList.toggle("lit", words.has(node.dataset.word));
}

// --- the bars ---------------------------------------------------------------------------------

function showGains() {
  const searched = answer.sentences.filter((one) => !["repeats", "repeats_given", "irrelevant"].includes(one.reason));
  const all = searched.toSorted((a, b) => (b.gains[0] ?? 0) - (a.gains[0] ?? 0));
  const kept = all.filter((one, place) => place < MOST_BARS || answer.order.has(one.index));
  const most = Math.max(1e-9, all[0]?.gains[0] ?? 0);
  at("gains").replaceChildren(...kept.map((one) => {
    const node = made("li");
    node.dataset.index = one.index;
    const name = made("span", "name", one.passage.text);
    name.dir = "auto";
    name.title = one.passage.text;
    const track = made("span", "track");
    track.append(made("span", "start"), made("span", "bar"));
    track.firstChild.style.width = `${Math.max(0, 100 * (one.gains[0] ?? 0) / most)}%`;
    track.dataset.most = most;
    node.append(made("span", "place"), name, track, made("span", "value"));
    return node;
  }));
  const more = all.length - kept.length;
  const repeats = answer.sentences.filter((one) => one.reason === "repeats").length;
  const leftOut = answer.sentences.length - searched.length - repeats;
  at("more-gains").textContent = [
    more && `${more} more with smaller gains are not shown.`,
    repeats && `${repeats} that repeat${repeats > 1 ? "" : "s"} another one took no part.`,
    leftOut && `${leftOut} with less relevance than the limit took no part.`,
  ].filter(Boolean).join(" ");
}

// In round n every sentence has the gain that decided that round; before round 1, that of round 1.
function moveBars() {
  const now = Math.max(1, round);
  at("bars-now").textContent = round ? `Solid: in round ${round}. Coloured: picks, when they were taken.` : "Solid: now.";
  for (const node of at("gains").children) {
    const index = Number(node.dataset.index);
    const place = answer.order.get(index) ?? Infinity;
    const isTaken = place <= round;
    const gain = answer.byIndex.get(index).gains[(isTaken ? place : now) - 1] ?? 0;
    node.className = isTaken ? `${colourOf(place)}${place === round ? " now" : ""}` : "";
    node.querySelector(".place").textContent = isTaken ? `${place}` : "";
    const track = node.querySelector(".track");
    track.lastChild.style.width = `${Math.max(0, 100 * gain / track.dataset.most)}%`;
    node.querySelector(".value").textContent = gain.toFixed(2);
  }
}

// --- other methods ----------------------------------------------------------------------------

function showMethods() {
  at("methods").replaceChildren(...answer.methods.map(({ method, description, indices, coverage }) => {
    const texts = indices.map((index) => answer.byIndex.get(index).passage.text);
    const node = made("div", method === "dgn" ? "method ours" : "method");
    node.append(made("h3", "", method));
    if (answer.parts) node.append(partsNode(answer.parts, texts));
    const share = coverage === null ? "" : `${percent(coverage)} of the query covered; `;
    node.append(made("p", "help", `${share}${description}`));
    const list = made("ol");
    list.append(...indices.map((index, place) => {
      const pick = answer.order.get(index);
      return made("li", pick ? colourOf(pick) : "", texts[place]);
    }));
    for (const item of list.children) item.dir = "auto";
    node.append(list);
    return node;
  }));
  at("methods-help").textContent = `${answer.parts ? "The parts of this sample's query, and the sentences that answer them, "
    + "were marked by hand. The sample was written and chosen to show dgn's strength; on other texts, other methods find as "
    + "much, or more. " : ""}Each method selects as many `
    + "sentences as dgn; a token limit does not apply to the others. The share of the query that is covered is measured "
    + "by dgn's own function, which favours dgn; read the sentences.";
}

// Which parts of a sample's query are answered by these sentences.
function partsNode(parts, texts) {
  const isFound = ({ evidence }) => evidence.some((quote) => texts.some((text) => text.includes(quote)));
  const node = made("div", "parts");
  node.append(made("p", "count", `${parts.filter(isFound).length} of ${parts.length} parts`));
  const list = made("ul");
  list.append(...parts.map((part) => {
    const item = made("li", isFound(part) ? "found" : "missed");
    item.append(made("span", "visually-hidden", isFound(part) ? "found: " : "missed: "), part.name);
    return item;
  }));
  node.append(list);
  return node;
}

// --- rounds -----------------------------------------------------------------------------------

function showRound(number) {
  const { selected, words } = answer.explanation;
  round = Math.min(Math.max(0, number), selected.length);
  at("round").value = round;
  at("round-text").textContent = !selected.length ? "nothing was selected"
    : round ? `round ${round} of ${selected.length}` : "before round 1";
  const share = round ? selected[round - 1].covered : 0;
  const open = words.filter((one) => one.is_content && (one.covered[round] ?? 0) < 0.5);
  const isNothing = (selected.at(-1)?.covered ?? 0) < 0.01;
  at("covered").replaceChildren(made("strong", "", percent(share)),
    ` of the query is covered${open.length && round ? `; less than half of: ${open.map((one) => one.word).join(", ")}` : ""}.`
    + (isNothing ? " The text does not mention the query; these picks mean little." : "")
    + (answer.explanation.is_repetitive ? " Most of the picks are similar to each other; more breadth selects others." : ""));
  fillWords();
  markPicks(round);
  moveBars();
}

export function stopPlaying() {
  clearInterval(playing);
  playing = null;
  at("play").textContent = "Play";
  at("play").setAttribute("aria-label", "Play the rounds");
}

function play() {
  if (playing !== null) return stopPlaying();
  const last = answer.explanation.selected.length;
  if (round >= last) showRound(0);
  at("play").textContent = "Pause";
  at("play").setAttribute("aria-label", "Pause");
  playing = setInterval(() => {
    showRound(round + 1);
    if (round >= last) stopPlaying();
  }, PLAY_MS);
}

function step(number) {
  stopPlaying();
  showRound(number);
}

listen(light);
// What stays in view above a long text.
new ResizeObserver(([{ target }]) => {
  document.documentElement.style.setProperty("--head", `${target.offsetHeight}px`);
}).observe(at("question"));
at("first").addEventListener("click", () => step(0));
at("back").addEventListener("click", () => step(round - 1));
at("forward").addEventListener("click", () => step(round + 1));
at("last").addEventListener("click", () => step(answer.explanation.selected.length));
at("round").addEventListener("input", () => step(Number(at("round").value)));
at("play").addEventListener("click", play);
