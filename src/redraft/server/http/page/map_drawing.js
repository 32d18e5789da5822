// Draws the points of the map, with a colour and a shape per group. Knows no pointer and no key.

import { toScreen } from "./viewport.js";

const SHAPES = ["circle", "square", "diamond", "triangle"];
const COLOURS = 12;

/** Returns the colour and shape of the group with this rank; rank 0 is "others". */
export const styleOf = (rank) => ({
  colour: rank === 0 ? 0 : ((rank - 1) % COLOURS) + 1,
  shape: rank === 0 ? "circle" : SHAPES[(rank - 1) % SHAPES.length],
});

/** Adds a shape around a position to the path of a canvas. */
export const trace = (context, shape, { x, y }, radius) => {
  if (shape === "circle") {
    context.moveTo(x + radius, y);
    context.arc(x, y, radius, 0, 2 * Math.PI);
  } else if (shape === "square") {
    const side = radius * 0.9;
    context.rect(x - side, y - side, 2 * side, 2 * side);
  } else {
    const wide = radius * 1.25;
    const low = shape === "diamond" ? 0 : radius * 0.75;
    context.moveTo(x, y - wide);
    context.lineTo(x + wide, y + low);
    if (shape === "diamond") context.lineTo(x, y + wide);
    context.lineTo(x - wide, y + low);
    context.closePath();
  }
};

/** Returns the page's colours, resolved for the current theme. */
export const readColours = (canvas) => {
  const probe = document.createElement("i");
  canvas.after(probe);
  const read = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const groups = Array.from({ length: COLOURS + 1 }, (_, at) => read(`group-${at}`));
  const colours = { ink: read("ink"), groups };
  probe.remove();
  return colours;
};

const radiusFor = (view, count, width) => {
  const base = count > 800 ? 3 : count > 120 ? 4 : 5.5;
  const room = Math.min(1, Math.max(0.6, width / 700));
  return base * room * Math.min(2, Math.max(0.8, Math.sqrt(view.scale / view.whole)));
};

/** Draws the map; points with `isFaint(point)` are faint, those in `ringed` have a ring. */
export const draw = (canvas, { view, points, isFaint, ringed, colours }) => {
  const ratio = devicePixelRatio;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  const radius = radiusFor(view, points.length, canvas.clientWidth);
  const layers = [points.filter(isFaint), points.filter((point) => !isFaint(point))];
  for (const [i, layer] of layers.entries()) {
    context.globalAlpha = i === 0 ? 0.16 : 0.8;
    for (const point of layer) {
      const { colour, shape } = styleOf(point.rank);
      context.fillStyle = colours.groups[colour];
      context.beginPath();
      trace(context, shape, toScreen(view, point), radius);
      context.fill();
    }
  }
  context.globalAlpha = 1;
  for (const point of ringed.filter(Boolean)) {
    const { colour, shape } = styleOf(point.rank);
    const at = toScreen(view, point);
    context.beginPath();
    trace(context, shape, at, radius + 1.5);
    context.fillStyle = colours.groups[colour];
    context.fill();
    context.beginPath();
    context.arc(at.x, at.y, radius + 6, 0, 2 * Math.PI);
    context.lineWidth = 2;
    context.strokeStyle = colours.ink;
    context.stroke();
  }
};
