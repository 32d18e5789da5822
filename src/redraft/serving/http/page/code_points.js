// Python counts characters where JavaScript counts UTF-16 units: of "🙂" one, and two.

/** How many characters stand before a place that is given in UTF-16 units. */
export const charactersBefore = (text, units) => {
  let count = 0;
  for (const _ of text.slice(0, units)) count += 1;
  return count;
};
