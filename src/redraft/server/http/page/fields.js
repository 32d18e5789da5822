// The form fields of a model's input, with error messages beside them.

import { element } from "./dom.js";

const TEXT = "text";

/** Converts a field's name to a label: "player_class" becomes "Player class". */
export const labelOf = (name, isOnly) => {
  if (isOnly && name === TEXT) return "Input";
  const spaced = name.replaceAll("_", " ");
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
};

/** Converts an input, text or object, to named fields. */
export const asFields = (x) => (typeof x === "string" ? { [TEXT]: x } : x);

/** Creates a labelled text area with space for an error message. */
export const textField = ({ id, name, label, rows, hint }) =>
  element(
    "div",
    { class: "field" },
    element("label", { for: id }, label),
    hint && element("p", { class: "hint", id: `${id}-hint` }, hint),
    element("textarea", {
      id,
      name,
      rows,
      spellcheck: "false",
      autocapitalize: "off",
      "aria-describedby": `${id}-problem`,
    }),
    element("p", { class: "problem", id: `${id}-problem` }),
  );

/** Creates the fields of a model's input inside a box; `prefix` makes their ids unique. */
export const createFields = (box, prefix) => {
  let names = [];
  const areas = () => [...box.querySelectorAll("textarea")];

  /** Shows these fields; keeps their text if they are shown already. */
  const show = (wanted) => {
    if (wanted.join("\n") === names.join("\n") && names.length > 0) return;
    names = wanted.length > 0 ? wanted : [TEXT];
    const isOnly = names.length === 1;
    box.replaceChildren(
      ...names.map((name, at) =>
        textField({ id: `${prefix}-${at}`, name, label: labelOf(name, isOnly), rows: isOnly ? 5 : 2 }),
      ),
    );
  };
  const fill = (x) => {
    const values = asFields(x);
    for (const area of areas()) area.value = values[area.name] ?? "";
  };
  const isBlank = () => areas().every((area) => area.value.trim() === "");
  /** Returns the input in the format of the API. */
  const read = () => {
    const values = Object.fromEntries(areas().map((area) => [area.name, area.value]));
    return names.length === 1 && names[0] === TEXT ? values[TEXT] : values;
  };
  return { show, fill, read, isBlank };
};

/** Returns the control for an error's field, such as "inputs.0.title", or null. */
export const controlOf = (form, field) => {
  const parts = (field ?? "").split(".");
  const named = [...form.elements].filter((control) => control.name);
  const direct = named.find((control) => parts.includes(control.name));
  const input = parts[0] === "inputs" || parts[0] === "x";
  return direct ?? (input ? named[0] : null) ?? null;
};

/** Shows an error message beside a control and focuses the control. */
export const showProblem = (control, message) => {
  control.setAttribute("aria-invalid", "true");
  const place = control.closest(".field").querySelector(".problem");
  place.textContent = message;
  control.focus();
};

/** Removes all error messages of a form. */
export const clearProblems = (form) => {
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
  for (const place of form.querySelectorAll(".problem")) place.textContent = "";
};
