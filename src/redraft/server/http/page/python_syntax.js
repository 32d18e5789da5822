// Minimal Python syntax for highlighting. Knows no element.

const KEYWORDS = [
  "False None True and as assert async await break case class continue def del elif else except",
  "finally for from global if import in is lambda match nonlocal not or pass raise return try while",
  "with yield",
].flatMap((line) => line.split(" "));
const LONG = String.raw`"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)`;
const SHORT = String.raw`"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?`;
const PARTS = [
  "(?<comment>#[^\\n]*)",
  `(?<string>\\b[rRbBfFuU]{1,2}(?:${LONG}|${SHORT})|${LONG}|${SHORT})`,
  `(?<keyword>\\b(?:${KEYWORDS.join("|")})\\b)`,
];
const PATTERN = new RegExp(PARTS.join("|"), "g");
const LONGEST = 50_000;

const kindOf = ({ comment, keyword }) => {
  if (comment) return "comment";
  return keyword ? "keyword" : "string";
};

/** Splits a text into pieces with their kinds; a very long text is one piece. */
export const piecesOf = (text) => {
  if (text.length > LONGEST) return [{ kind: null, text }];
  const pieces = [];
  let end = 0;
  for (const match of text.matchAll(PATTERN)) {
    if (match.index > end) pieces.push({ kind: null, text: text.slice(end, match.index) });
    pieces.push({ kind: kindOf(match.groups), text: match[0] });
    end = match.index + match[0].length;
  }
  if (end < text.length) pieces.push({ kind: null, text: text.slice(end) });
  return pieces;
};

/** Splits pieces at an offset. */
export const splitAt = (pieces, place) => {
  const before = [];
  const after = [];
  let at = 0;
  for (const { kind, text } of pieces) {
    const cut = Math.max(0, Math.min(text.length, place - at));
    if (cut > 0) before.push({ kind, text: text.slice(0, cut) });
    if (cut < text.length) after.push({ kind, text: text.slice(cut) });
    at += text.length;
  }
  return [before, after];
};

/** Returns the indentation of a new line at an offset: one level more after a colon. */
export const indentationAfter = (text, place) => {
  const line = text.slice(text.lastIndexOf("\n", place - 1) + 1, place);
  const indentation = line.match(/^[ \t]*/)[0];
  return /:\s*(#.*)?$/.test(line) ? `${indentation}    ` : indentation;
};
