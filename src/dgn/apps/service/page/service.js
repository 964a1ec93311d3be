// Asks the service, and turns every way in which that can fail into a sentence for people.

const SECONDS = 60;
const KEY = "token";

// What the page shows when a request failed; `status` is 401 if a token is missing or wrong.
export class Failure extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

// --- the token --------------------------------------------------------------------------------

let token = "";
try {
  token = sessionStorage.getItem(KEY) ?? "";
} catch {
  // Storage is switched off in this browser: the token is kept until the page is closed.
}

export const hasToken = () => token !== "";

export function keepToken(given) {
  token = given;
  try {
    if (given) sessionStorage.setItem(KEY, given);
    else sessionStorage.removeItem(KEY);
  } catch {
    // As above.
  }
}

// A header cannot contain anything else, and neither can a token of dgn serve.
export const isTokenLike = (given) => /^[\x21-\x7e]+$/.test(given);

// --- requests ---------------------------------------------------------------------------------

// Posts a body to each of the paths; aborting the controller ends all of them.
export async function ask(paths, body, controller) {
  const late = new Failure(`The service did not answer within ${SECONDS} seconds. Try again, with less text.`);
  const timer = setTimeout(() => controller.abort(late), 1000 * SECONDS);
  try {
    return await Promise.all(paths.map((path) => post(path, body, controller.signal)));
  } finally {
    clearTimeout(timer);
  }
}

async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  let response, text;
  try {
    response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
    text = await response.text();
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw new Failure("The service does not answer. Check that dgn serve is still running and that "
      + "this device is connected to it, then try again.");
  }
  const content = parsed(text);
  if (response.ok && content) return content;
  throw new Failure(sentence(response, content), response.status);
}

// null if the text is not a JSON object: then it does not come from dgn serve.
function parsed(text) {
  try {
    const content = JSON.parse(text);
    return typeof content === "object" ? content : null;
  } catch {
    return null;
  }
}

function sentence(response, content) {
  const { status } = response;
  const again = tryAgain(response.headers.get("Retry-After"));
  const detail = typeof content?.detail === "string" ? plain(content.detail) : "";
  if (detail) return status === 503 ? `${detail.replace(/; try again later\.$/, ".")} ${again}` : detail;
  // What follows was not written by dgn serve, but by a proxy in front of it.
  if (response.ok) return "The address of this page answers with something else than dgn serve. Open the "
    + "address that dgn serve printed when it was started.";
  if (status === 413) return "A server between this page and dgn serve refuses so much text. Use less text.";
  if ([502, 503, 504].includes(status)) {
    return `A server between this page and dgn serve does not reach it (error ${status}). ${again} If that does not `
      + "help, check that dgn serve is running.";
  }
  return `A server between this page and dgn serve refused the request (error ${status}). Ask the person who runs it.`;
}

// The header has seconds or a date.
function tryAgain(header) {
  const seconds = Number(header);
  if (!header || !Number.isInteger(seconds) || seconds < 0) return "Try again in a moment.";
  return `Try again in ${seconds === 1 ? "a second" : `${seconds} seconds`}.`;
}

// The service names the field of its API; people see another name on the form.
const FIELDS = { query: "The query", k: "Sentences (k)", max_tokens: "The token limit", breadth: "Breadth" };

function plain(detail) {
  return detail.replace(/^\/(\w+)\S*: (it )?/, (_, field) => `${FIELDS[field] ?? "The text"}: `);
}
