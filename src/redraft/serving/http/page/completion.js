// The completion view: an editor for a model of Python functions, a form of input and prefix for any other.

import { createBufferCompletion } from "./buffer_completion.js";
import { createPrefixCompletion } from "./prefix_completion.js";

/** The view in a section of the page. */
export const createCompletion = (section, shared) => {
  const place = section.querySelector(".completion-body");
  let model = null;
  let current = null;
  let written; // the text of the editor, which stays when another model is asked
  return {
    /** Shows the view for a model. */
    show: (wanted) => {
      if (model?.name === wanted.name) return;
      current?.stop();
      written = current?.text?.() ?? written;
      model = wanted;
      const create = model.completes_python ? createBufferCompletion : createPrefixCompletion;
      current = create(place, model, shared, written);
    },
  };
};
