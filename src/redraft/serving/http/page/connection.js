// What happens when the server is gone or asks for a token: a banner, a question, and going on by itself.

import { announce } from "./dom.js";
import { keepToken, Problem } from "./api.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 5000;

const LOST = ["The server does not answer.", "What you wrote is still here. Trying again …"];
const LOADING = ["Models are being loaded.", "This page goes on by itself when they are."];

/** Shows the banner while nobody answers; what failed is done again when the server is back. */
export const createConnection = ({ banner, isReady }) => {
  const waiting = new Map();
  const button = banner.querySelector("button");
  let timer = null;
  let pause = FIRST_PAUSE;

  const recover = () => {
    banner.hidden = true;
    pause = FIRST_PAUSE;
    announce("The server answers again.");
    const again = [...waiting.values()];
    waiting.clear();
    for (const act of again) act();
  };
  const check = async () => {
    clearTimeout(timer);
    button.textContent = "Trying …";
    const isBack = await isReady();
    button.textContent = "Retry";
    if (isBack) return recover();
    pause = Math.min(LONGEST_PAUSE, pause * 1.5);
    timer = setTimeout(check, pause);
  };
  button.addEventListener("click", check);

  /** Notes what could not be done; whoever asks again replaces what they asked before. */
  const wait = ([heading, text], who, act) => {
    waiting.set(who, act);
    banner.querySelector("strong").textContent = heading;
    banner.querySelector("span").textContent = text;
    if (!banner.hidden) return;
    banner.hidden = false;
    announce(`${heading} ${text}`);
    timer = setTimeout(check, pause);
  };
  return {
    lost: (who, act) => wait(LOST, who, act),
    loading: (who, act) => wait(LOADING, who, act),
  };
};

/** A function that asks for the token, one question for all requests that wait for it. */
export const createTokenQuestion = (dialog) => {
  const field = dialog.querySelector("input");
  const problem = dialog.querySelector(".problem");
  let asked = null;

  const ask = (wasWrong) =>
    new Promise((resolve, reject) => {
      problem.textContent = wasWrong ? "The server did not accept that token." : "";
      field.value = "";
      const closed = () => {
        asked = null;
        if (dialog.returnValue === "given") {
          keepToken(field.value.trim());
          resolve();
        } else reject(new Problem("refused", "This server asks for a token."));
      };
      dialog.returnValue = "";
      dialog.addEventListener("close", closed, { once: true });
      dialog.showModal();
      field.focus();
    });

  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    dialog.close("given");
  });
  dialog.querySelector("[value=cancel]").addEventListener("click", () => dialog.close(""));
  return (wasWrong) => (asked ??= ask(wasWrong));
};
