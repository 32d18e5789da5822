// Search and groups of the map. Pure functions of points.

/** Returns the groups with their ranks, largest first; "others", whose name is empty, has rank 0. */
export const rankGroups = (points) => {
  const counts = new Map();
  for (const { group } of points) counts.set(group, (counts.get(group) ?? 0) + 1);
  const others = counts.get("") ?? 0;
  counts.delete("");
  const named = [...counts]
    .sort(([a, m], [b, n]) => n - m || a.localeCompare(b))
    .map(([name, count], at) => ({ name, count, rank: at + 1 }));
  return others > 0 ? [...named, { name: "", count: others, rank: 0 }] : named;
};

/** Adds the rank of its group to each point; "others" come first, to be drawn beneath. */
export const withRanks = (points, groups) => {
  const ranks = new Map(groups.map(({ name, rank }) => [name, rank]));
  const ranked = points.map((point) => ({ ...point, rank: ranks.get(point.group) }));
  return [...ranked.filter(({ rank }) => rank === 0), ...ranked.filter(({ rank }) => rank > 0)];
};

/** Returns the points that contain every word of the query. */
export const search = (points, query) => {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return points.filter(({ label, group }) => {
    const text = `${label} ${group}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
};
