// The completion view: a code editor for models of Python functions, a form for other models.

import { createBufferCompletion } from "./buffer_completion.js";
import { createPrefixCompletion } from "./prefix_completion.js";

/** Creates the view in a section of the page. */
export const createCompletion = (section, shared) => {
  const place = section.querySelector(".completion-body");
  let model = null;
  let current = null;
  let text; // of the editor; kept when the model changes
  return {
    /** Shows the view for a model. */
    show: (wanted) => {
      if (model?.name === wanted.name) return;
      current?.stop();
      text = current?.text?.() ?? text;
      model = wanted;
      const create = model.completes_python ? createBufferCompletion : createPrefixCompletion;
      current = create(place, model, shared, text);
    },
  };
};
