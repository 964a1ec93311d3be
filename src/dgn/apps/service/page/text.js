// The text in its paragraphs, every sentence a button, and why it was taken or not next to it.
// All nodes of the page are made of text, never of HTML: a text cannot become a part of the page.

import { named, whyNot, whyTaken } from "/page/reasons.js";

const COLOURS = 5;

export const at = (id) => document.getElementById(id);

export function made(tag, className = "", text = "") {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.textContent = text;
  return node;
}

export const colourOf = (place) => `pick-${((place - 1) % COLOURS) + 1}`;

let answer = null;
let pressed = null; // the sentence whose reason is shown
const reason = made("div", "reason");
reason.id = "reason";
reason.dir = "ltr";

export function showText(found) {
  answer = found;
  pressed = null;
  const documents = new Map();
  for (const one of answer.sentences) {
    const key = one.passage.document ?? `passages ${one.passage.title}`;
    if (!documents.has(key)) documents.set(key, []);
    documents.get(key).push(one);
  }
  at("document").replaceChildren(...[...documents.values()].map((sentences) => {
    const { title, document } = sentences[0].passage;
    const node = made("div", "document");
    if (title) node.append(made("h3", "", title));
    node.firstChild?.setAttribute("dir", "auto");
    const paragraphs = document === null ? sentences.map((one) => [one])
      : paragraphsOf(answer.request.documents[document].text, sentences);
    node.append(...paragraphs.map((parts) => {
      const paragraph = made("div", "paragraph");
      paragraph.dir = "auto";
      paragraph.append(...parts.map((part) => (typeof part === "string" ? part : sentenceNode(part))));
      return paragraph;
    }));
    return node;
  }));
}

// Lists of sentences, with what is written between them; an empty line separates paragraphs.
function paragraphsOf(text, sentences) {
  const cut = cutter(text);
  const paragraphs = [[]];
  const between = (gap) => gap.split(/\n[^\S\n]*\n\s*/).forEach((piece, place) => {
    if (place) paragraphs.push([]);
    if (piece) paragraphs.at(-1).push(piece);
  });
  let end = 0;
  for (const one of sentences) {
    between(cut(end, one.passage.start));
    paragraphs.at(-1).push(one);
    end = one.passage.end;
  }
  between(cut(end));
  return paragraphs.filter((parts) => parts.some((part) => typeof part !== "string" || part.trim()));
}

// The service counts characters, JavaScript counts UTF-16 units; they differ for emoji and rare characters.
function cutter(text) {
  if (!/[\ud800-\udfff]/.test(text)) return (start, end) => text.slice(start, end);
  const characters = Array.from(text);
  return (start, end) => characters.slice(start, end).join("");
}

// Not <button>: browsers lay it out as one block, so that text could not flow.
function sentenceNode(one) {
  const node = made("span", "sentence", one.passage.text);
  node.setAttribute("role", "button");
  node.setAttribute("aria-expanded", "false");
  node.tabIndex = 0;
  node.dataset.index = one.index;
  return node;
}

export function markPicks(round) {
  for (const node of at("document").querySelectorAll(".sentence")) {
    const place = answer.order.get(Number(node.dataset.index)) ?? 0;
    const isTaken = place > 0 && place <= round;
    node.className = isTaken ? `sentence ${colourOf(place)}` : "sentence";
    node.querySelector(".badge")?.remove();
    if (isTaken) node.prepend(made("span", "badge", `${place}`));
  }
}

// The sentence stays where it is on the screen, and its reason is below it.
function press(node) {
  const top = node.getBoundingClientRect().top;
  pressed?.setAttribute("aria-expanded", "false");
  pressed?.removeAttribute("aria-controls");
  reason.remove();
  pressed = pressed === node ? null : node;
  if (pressed) {
    node.setAttribute("aria-expanded", "true");
    node.setAttribute("aria-controls", "reason");
    const index = Number(node.dataset.index);
    reason.replaceChildren(...reasonOf(index).map((line, place) => {
      const paragraph = made("p", "", place ? line : "");
      if (!place) paragraph.append(made("strong", "", named(index, answer.explanation)), ` ${line}`);
      return paragraph;
    }));
    node.after(reason);
  }
  scrollBy({ top: node.getBoundingClientRect().top - top, behavior: "instant" });
  if (pressed) reason.scrollIntoView({ block: "nearest", behavior: "instant" });
}

function reasonOf(index) {
  const place = answer.order.get(index);
  const { explanation } = answer;
  return place ? whyTaken(explanation.selected[place - 1], place, explanation)
    : whyNot(explanation.passed.find((one) => one.index === index), explanation);
}

// Calls `light` with the index of the sentence that is under the mouse or has the focus, or with null.
export function listen(light) {
  const sentenceOf = (event) => event.target.closest?.(".sentence") ?? null;
  const lightOf = (node) => light(node ? Number(node.dataset.index) : null);
  at("document").addEventListener("click", (event) => {
    const isMarking = !getSelection().isCollapsed; // text can be marked and copied
    if (sentenceOf(event) && !isMarking) press(sentenceOf(event));
  });
  at("document").addEventListener("keydown", (event) => {
    const node = sentenceOf(event);
    const isPress = event.key === "Enter" || event.key === " ";
    if (!node || !(isPress || (event.key === "Escape" && pressed === node))) return;
    event.preventDefault();
    press(node);
  });
  at("document").addEventListener("mouseover", (event) => lightOf(sentenceOf(event)));
  at("document").addEventListener("mouseleave", () => light(null));
  at("document").addEventListener("focusin", (event) => lightOf(sentenceOf(event)));
  at("document").addEventListener("focusout", () => light(null));
}
