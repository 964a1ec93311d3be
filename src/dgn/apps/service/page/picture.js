// The answer as a PNG: the query with its words, the picks with their reasons, and the certificate.

import { certificateText, coverLines, percent, pickOf } from "/page/reasons.js";

const WIDTH = 1200;
const EDGE = 48;
const SCALE = 2;
const LONGEST_EDGE = 16_384; // of a canvas, in every browser
const FONT = 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const INK = "#17211b";
const DIM = "#4d5a52";
const GREEN = "#14613a";
const PICKS = ["#bfe9ce", "#c6ddfa", "#fcdcab", "#e2cff7", "#fbccd8"];

// Breaks at spaces; a word that is wider than a line, or a language without spaces, anywhere.
function wrapped(context, text, width) {
  const lines = [""];
  const fits = (line) => context.measureText(line).width <= width;
  for (const word of text.split(/\s+/)) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (fits(longer)) {
      lines[lines.length - 1] = longer;
      continue;
    }
    if (lines.at(-1)) lines.push("");
    for (const letter of word) {
      if (lines.at(-1) && !fits(lines.at(-1) + letter)) lines.push("");
      lines[lines.length - 1] += letter;
    }
  }
  return lines;
}

// Draws everything from top to bottom; returns the height that was used.
function draw(context, answer) {
  const { explanation } = answer;
  let y = EDGE;
  const write = (text, { size = 20, weight = 400, colour = INK, x = EDGE, width = WIDTH - 2 * EDGE } = {}) => {
    context.font = `${weight} ${size}px ${FONT}`;
    context.fillStyle = colour;
    for (const line of wrapped(context, text, width)) {
      y += size * 1.35;
      context.fillText(line, x, y - size * 0.35);
    }
  };
  write(explanation.query, { size: 26, weight: 700 });
  y += 14;
  y = drawWords(context, explanation, y) + 10;
  explanation.selected.forEach((one, place) => {
    const top = y;
    const paint = (isBack) => {
      y = top + 12;
      if (isBack) context.globalAlpha = 0;
      write(one.passage.text, { size: 21, x: EDGE + 58, width: WIDTH - 2 * EDGE - 76 });
      const title = one.passage.title ? `${one.passage.title} · ` : "";
      write(`${title}adds ${one.gain.toFixed(2)} · ${percent(one.covered)} of the query is covered`,
        { size: 17, colour: DIM, x: EDGE + 58, width: WIDTH - 2 * EDGE - 76 });
      for (const line of coverLines(one, explanation)) {
        write(line, { size: 17, colour: DIM, x: EDGE + 58, width: WIDTH - 2 * EDGE - 76 });
      }
      y += 12;
      context.globalAlpha = 1;
    };
    paint(true); // measures
    context.fillStyle = PICKS[place % PICKS.length];
    context.beginPath();
    context.roundRect(EDGE, top, WIDTH - 2 * EDGE, y - top, 10);
    context.fill();
    paint(false);
    context.fillStyle = GREEN;
    context.beginPath();
    context.arc(EDGE + 30, top + 32, 16, 0, 2 * Math.PI);
    context.fill();
    context.fillStyle = "#ffffff";
    context.font = `700 18px ${FONT}`;
    context.textAlign = "center";
    context.fillText(`${place + 1}`, EDGE + 30, top + 38);
    context.textAlign = "left";
    y += 12;
  });
  y += 6;
  write(certificateText(explanation), { size: 17, colour: DIM });
  write("dgn", { size: 17, weight: 700, colour: GREEN });
  return y + EDGE / 2;
}

function drawWords(context, explanation, top) {
  let x = EDGE;
  let y = top;
  context.font = `400 19px ${FONT}`;
  for (const { word, covered } of explanation.words) {
    const width = context.measureText(word).width + 18;
    if (x + width > WIDTH - EDGE) [x, y] = [EDGE, y + 40];
    context.fillStyle = PICKS[Math.max(0, pickOf(covered, covered.length - 1) - 1) % PICKS.length];
    context.fillRect(x, y, width * covered.at(-1), 32);
    context.strokeStyle = "#c9d1cc";
    context.strokeRect(x, y, width, 32);
    context.fillStyle = INK;
    context.fillText(word, x + 9, y + 22);
    x += width + 8;
  }
  return y + 46;
}

export function drawPicture(answer) {
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d");
  canvas.width = canvas.height = 1;
  const height = Math.ceil(draw(context, answer));
  const scale = Math.min(SCALE, LONGEST_EDGE / height);
  canvas.width = Math.ceil(WIDTH * scale);
  canvas.height = Math.ceil(height * scale);
  context.scale(scale, scale);
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, WIDTH, height);
  draw(context, answer);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
