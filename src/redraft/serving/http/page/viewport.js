// Where points of the map stand on the screen: pure arithmetic of moving and zooming.
// A view is {scale, x, y}: a point p stands at (p.x * scale + x, y - p.y * scale).

const LEAST = 0.5;
const MOST = 60;

const extent = (values) => [Math.min(...values), Math.max(...values)];

/** The view in which all points are seen; `whole` is its scale, for the limits. */
export const fit = (points, { width, height }, margin) => {
  const [left, right] = extent(points.map(({ x }) => x));
  const [low, high] = extent(points.map(({ y }) => y));
  const wide = Math.max(width - 2 * margin, 1) / Math.max(right - left, 1e-9);
  const tall = Math.max(height - 2 * margin, 1) / Math.max(high - low, 1e-9);
  const scale = Math.min(wide, tall); // one scale for both, or distances would mislead
  const x = width / 2 - (scale * (left + right)) / 2;
  const y = height / 2 + (scale * (low + high)) / 2;
  return { scale, whole: scale, x, y };
};

/** Where a point stands. */
export const toScreen = (view, { x, y }) => ({ x: x * view.scale + view.x, y: view.y - y * view.scale });

/** The view moved by so many pixels. */
export const panned = (view, dx, dy) => ({ ...view, x: view.x + dx, y: view.y + dy });

/** The view zoomed so that what is at a place of the screen stays there. */
export const zoomed = (view, factor, at) => {
  const scale = Math.min(MOST * view.whole, Math.max(LEAST * view.whole, view.scale * factor));
  const by = scale / view.scale;
  return { ...view, scale, x: at.x - (at.x - view.x) * by, y: at.y - (at.y - view.y) * by };
};

/** The view moved so that a point is seen, by as little as needed: not at all if it is. */
export const revealing = (view, point, { width, height }, margin) => {
  const at = toScreen(view, point);
  const isSeen = at.x >= margin && at.x <= width - margin && at.y >= margin && at.y <= height - margin;
  return isSeen ? view : panned(view, width / 2 - at.x, height / 2 - at.y);
};

/** The nearest of the points to a place of the screen, none if all are further than `reach`. */
export const nearest = (view, points, place, reach) => {
  let best = null;
  let least = reach * reach;
  for (const point of points) {
    const at = toScreen(view, point);
    const distance = (at.x - place.x) ** 2 + (at.y - place.y) ** 2;
    if (distance <= least) [best, least] = [point, distance];
  }
  return best;
};
