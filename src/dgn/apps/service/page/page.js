// The page: samples, links and the form, from them to the service, and what can be saved of its answer.

import { explanationOf } from "/page/explanation.js";
import { linkOf, stateOf } from "/page/link.js";
import { drawPicture } from "/page/picture.js";
import { show, stopPlaying } from "/page/rounds.js";
import { ask, hasToken, isTokenLike, keepToken } from "/page/service.js";
import { at, made } from "/page/text.js";

const LARGEST_FILE = 2 ** 21;

let samples = [];
let answer = null; // the request, and what /v1/explain and /v1/compare answered
let newest = null; // what ends the newest request; an older one may not change the page

// --- the form ---------------------------------------------------------------------------------

function formState() {
  return {
    query: at("query").value,
    text: at("text").value,
    unit: document.querySelector("input[name=unit]:checked").value,
    k: at("k").value,
    max_tokens: at("max-tokens").value,
    breadth: at("breadth").value,
  };
}

function fillForm(state) {
  at("query").value = state.query;
  at("text").value = state.text;
  at("k").value = state.k ?? "3";
  at("max-tokens").value = state.max_tokens ?? "";
  at("breadth").value = state.breadth ?? "";
  const unit = ["passages", "chunks"].includes(state.unit) ? state.unit : "documents";
  document.querySelector(`input[name=unit][value=${unit}]`).checked = true;
}

function openForm(isOpen) {
  at("form").hidden = !isOpen;
  at("edit").setAttribute("aria-expanded", String(isOpen));
}

// A line that begins with a single "#" is a title and begins a new document. The headings of Markdown
// below it ("##") are text, and so are the lines of a block of code.
function parts(text) {
  const found = [{ title: "", lines: [] }];
  let fence = "";
  for (const line of text.split(/\r?\n/)) {
    const mark = /^ {0,3}(```|~~~)/.exec(line)?.[1];
    if (mark && (!fence || fence === mark)) fence = fence ? "" : mark;
    if (!fence && /^#\s+\S/.test(line)) found.push({ title: line.slice(1).trim(), lines: [] });
    else found.at(-1).lines.push(line);
  }
  return found.filter((one) => one.lines.some((line) => line.trim()));
}

function requestOf(state) {
  const request = { query: state.query.trim() };
  if (state.unit !== "documents") {
    const piecesOf = (lines) => (state.unit === "passages" ? lines : lines.join("\n").split(/\n\s*\n/));
    request.passages = parts(state.text).flatMap(({ title, lines }) =>
      piecesOf(lines).filter((piece) => piece.trim()).map((piece) => ({ text: piece.trim(), title })));
  } else {
    request.documents = parts(state.text).map(({ title, lines }) => ({ title, text: lines.join("\n") }));
  }
  if (state.k) request.k = Number(state.k);
  if (state.max_tokens) request.max_tokens = Number(state.max_tokens);
  if (state.breadth) request.breadth = Number(state.breadth);
  return request;
}

async function addFiles(files) {
  const texts = [];
  at("error").textContent = "";
  for (const file of files) {
    if (file.size > LARGEST_FILE) {
      at("error").textContent = `${file.name} is larger than 2 MiB.`;
      return;
    }
    const title = file.name.replace(/\.(txt|text|md)$/i, "").replaceAll("_", " ");
    texts.push(`# ${title}\n${(await file.text()).trim()}`);
  }
  const before = at("text").value.trim();
  at("text").value = [...(before ? [before] : []), ...texts].join("\n\n");
}

// --- selecting --------------------------------------------------------------------------------

// Asks the service about the form. `isOpening`: the page does so by itself, and the focus stays where it is.
async function select({ isOpening = false } = {}) {
  stopPlaying();
  newest?.abort();
  const mine = new AbortController();
  newest = mine;
  const state = formState();
  at("error").textContent = "";
  if (!state.query.trim() || !parts(state.text).length) {
    at("error").textContent = state.query.trim() ? "Paste some text first." : "Write a query first.";
    return;
  }
  at("results").setAttribute("aria-busy", "true");
  try {
    const request = requestOf(state);
    const [explained, compared] = await ask(["/v1/explain", "/v1/compare"], request, mine);
    const link = await linkOf(state);
    if (mine !== newest) return;
    const sample = samples.find((one) => Object.keys(state).every((key) => (one[key] ?? "") === state[key]));
    answer = { state, request, ...explained, explanation: explanationOf(explained), methods: compared.methods, parts: sample?.parts };
    markSample(sample);
    at("token-form").hidden = at("empty").hidden = true;
    at("answer").hidden = false;
    at("done").textContent = "";
    show(answer);
    if (isOpening) return;
    history.replaceState(null, "", link ?? location.pathname);
    if (JSON.stringify(formState()) !== JSON.stringify(state)) return; // somebody is typing
    openForm(false);
    at("results").focus({ preventScroll: true });
    at("results").scrollIntoView({ block: "nearest" });
  } catch (error) {
    mine.abort(); // one of the two requests may still be under way
    if (mine !== newest) return;
    // The old answer does not belong to this query.
    at("answer").hidden = true;
    at("empty").hidden = error.status === 401;
    if (error.status === 401) askForToken();
    else at("error").textContent = error.message;
  } finally {
    if (mine === newest) at("results").removeAttribute("aria-busy");
  }
}

function askForToken() {
  at("token-error").textContent = hasToken() ? "This token is not the right one. Check that it is complete, "
    + "or ask whether it was changed." : "";
  keepToken("");
  at("token-form").hidden = false;
  at("token").focus();
}

function sendToken(event) {
  event.preventDefault();
  const given = at("token").value.trim();
  if (!isTokenLike(given)) {
    at("token-error").textContent = "A token has only Latin letters, digits and signs, and no spaces.";
    return;
  }
  keepToken(given);
  at("token").value = "";
  select();
}

// --- samples and links ------------------------------------------------------------------------

function markSample(sample) {
  [...at("samples").children].forEach((node, place) => {
    node.setAttribute("aria-pressed", String(sample === samples[place]));
  });
}

async function loadSamples() {
  try {
    const response = await fetch("/page/samples.json");
    if (response.ok) samples = await response.json();
  } catch {
    samples = []; // the form works without them
  }
  at("samples").replaceChildren(...samples.map((sample) => {
    const node = made("button", "", sample.name);
    node.type = "button";
    node.setAttribute("aria-pressed", "false");
    node.addEventListener("click", () => {
      fillForm(sample);
      markSample(sample);
      select();
    });
    return node;
  }));
}

// What the address contains, or else the first sample.
async function open() {
  newest?.abort();
  const mine = new AbortController();
  newest = mine;
  let state = null;
  let problem = "";
  try {
    state = await stateOf(location.hash);
  } catch (error) {
    problem = error.message;
  }
  if (mine !== newest) return;
  if (problem) {
    at("answer").hidden = true;
    at("empty").hidden = false;
    at("error").textContent = problem;
    return;
  }
  const isInUse = answer !== null || at("query").value !== "" || at("text").value !== "";
  if (!state && (isInUse || !samples.length)) {
    at("empty").hidden = answer !== null;
    return;
  }
  fillForm(state ?? samples[0]);
  await select({ isOpening: true });
}

// --- export -----------------------------------------------------------------------------------

function save(blob, name) {
  const link = made("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  at("done").textContent = `Saved ${name}.`;
}

async function copyLink() {
  const link = await linkOf(answer.state);
  if (!link) {
    at("done").textContent = "The text is too long for a link. Save it as JSON instead.";
    return;
  }
  try {
    await navigator.clipboard.writeText(link);
    at("done").textContent = "The link was copied; it contains the whole text.";
  } catch {
    history.replaceState(null, "", link);
    at("done").textContent = "The address of this page is the link; it contains the whole text.";
  }
}

function saveJson() {
  const { request, selection, explanation, methods, text } = answer;
  const content = JSON.stringify({ request, selection, explanation, methods, text }, null, 2);
  save(new Blob([content], { type: "application/json" }), "selection.json");
}

// --- wiring -----------------------------------------------------------------------------------

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  select();
});
at("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) select();
});
at("edit").addEventListener("click", () => {
  openForm(at("form").hidden);
  if (!at("form").hidden) at("query").focus();
});
at("clear").addEventListener("click", () => {
  fillForm({ query: "", text: "" });
  at("query").focus();
});
at("token-form").addEventListener("submit", sendToken);
at("files").addEventListener("change", () => addFiles(at("files").files));
for (const kind of ["dragover", "dragleave", "drop"]) {
  at("text").addEventListener(kind, (event) => {
    at("text").classList.toggle("over", kind === "dragover");
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    if (kind === "drop") addFiles(event.dataTransfer.files);
  });
}
at("copy-link").addEventListener("click", copyLink);
at("save-json").addEventListener("click", saveJson);
at("save-png").addEventListener("click", async () => save(await drawPicture(answer), "selection.png"));
addEventListener("hashchange", open);

await loadSamples();
await open();
document.body.dataset.ready = "yes";
