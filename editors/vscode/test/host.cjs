// A small host in place of the editor: documents, events and registered providers, nothing on a screen.
//
// The client library asks for some hundred names of the `vscode` module when it starts. Names that this test
// has no use for are answered by what their form says: a class, an event, or a registration.

'use strict';

const Module = require('node:module');
const { TextDocument } = require('vscode-languageserver-textdocument');
const { URI, Utils } = require('vscode-uri');

class Disposable {
  constructor(callOnDispose = () => {}) {
    this.dispose = callOnDispose;
  }
}

class EventEmitter {
  listeners = new Set();
  event = (listener, self) => {
    const bound = self ? listener.bind(self) : listener;
    this.listeners.add(bound);
    return new Disposable(() => this.listeners.delete(bound));
  };
  fire(value) {
    for (const listener of this.listeners) listener(value);
  }
  dispose() {
    this.listeners.clear();
  }
}

class CancellationTokenSource {
  cancelled = new EventEmitter();
  token = { isCancellationRequested: false, onCancellationRequested: this.cancelled.event };
  cancel() {
    this.token.isCancellationRequested = true;
    this.cancelled.fire();
  }
  dispose() {}
}

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}

class Range {
  constructor(start, end, endLine, endCharacter) {
    this.start = typeof start === 'number' ? new Position(start, end) : start;
    this.end = typeof start === 'number' ? new Position(endLine, endCharacter) : end;
  }
}

class MarkdownString {
  value = '';
  appendText(text) {
    this.value += text;
    return this;
  }
  appendCodeblock(code, language) {
    this.value += `\n\`\`\`${language}\n${code}\n\`\`\`\n`;
    return this;
  }
}

class Hover {
  constructor(contents) {
    this.contents = contents;
  }
}

class InlineCompletionItem {
  constructor(insertText, range, command) {
    Object.assign(this, { insertText, range, command });
  }
}

class InlineCompletionList {
  constructor(items) {
    this.items = items;
  }
}

/** Answer unknown names of a namespace by their form. */
function tolerant(known) {
  return new Proxy(known, {
    get(target, name) {
      if (name in target || typeof name === 'symbol') return target[name];
      if (/^on[A-Z]/.test(name)) target[name] = new EventEmitter().event;
      else if (/^(register|create|set)[A-Z]/.test(name)) target[name] = () => new Disposable();
      else if (/^[A-Z]/.test(name)) target[name] = class {};
      return target[name];
    },
  });
}

/** Create a host whose settings and folder are given; `vscode` is the module that it provides. */
function createHost({ settings, folder }) {
  const events = { open: new EventEmitter(), change: new EventEmitter() };
  const providers = { inline: [], hover: [], content: {} };
  const commands = new Map();
  const statusBar = { text: '', tooltip: '', show() {}, hide() {}, dispose() {} };
  const messages = [];
  const root = { uri: URI.file(folder), name: 'work', index: 0 };
  const textDocuments = [];
  const configuration = {
    get: (name, fallback) => settings[name] ?? fallback,
    has: (name) => name in settings,
    inspect: () => undefined,
  };
  const output = tolerant({ name: '', append() {}, show() {}, dispose() {}, clear() {} });
  output.appendLine = (line) => messages.push(line);
  for (const level of ['trace', 'debug', 'info', 'warn', 'error']) output[level] = (line) => messages.push(line);

  // as the prototype: bundlers copy the module's own names
  const vscode = Object.assign(Object.create(tolerant({})), {
    __esModule: true,
    version: '1.91.0',
    Disposable, EventEmitter, CancellationTokenSource, Position, Range, MarkdownString, Hover,
    InlineCompletionItem, InlineCompletionList,
    Uri: Object.assign(URI, { joinPath: Utils.joinPath }),
    StatusBarAlignment: { Left: 1, Right: 2 },
    ViewColumn: { Beside: -2 },
    InlineCompletionTriggerKind: { Invoke: 0, Automatic: 1 },
    ProgressLocation: { Window: 10 },
    LogLevel: { Off: 0, Info: 3 },
    env: tolerant({ language: 'en', appName: 'host', logLevel: 3 }),
    workspace: tolerant({
      textDocuments,
      notebookDocuments: [],
      workspaceFolders: [root],
      onDidOpenTextDocument: events.open.event,
      onDidChangeTextDocument: events.change.event,
      getConfiguration: () => configuration,
      getWorkspaceFolder: () => root,
      registerTextDocumentContentProvider: (scheme, provider) => {
        providers.content[scheme] = provider;
        return new Disposable();
      },
      createFileSystemWatcher: () => tolerant({ dispose() {} }),
      fs: { stat: async (uri) => require('node:fs').promises.stat(uri.fsPath) },
    }),
    languages: tolerant({
      match: (selector, document) =>
        [selector].flat().some((one) => (one.language ?? one) === document.languageId) ? 10 : 0,
      registerInlineCompletionItemProvider: (selector, provider) => {
        const one = { selector, provider };
        providers.inline.push(one);
        return new Disposable(() => providers.inline.splice(providers.inline.indexOf(one), 1));
      },
      registerHoverProvider: (selector, provider) => {
        providers.hover.push(provider);
        return new Disposable();
      },
      createDiagnosticCollection: () => tolerant({ set() {}, delete() {}, clear() {}, dispose() {} }),
    }),
    window: tolerant({
      activeTextEditor: undefined,
      visibleTextEditors: [],
      visibleNotebookEditors: [],
      tabGroups: tolerant({ all: [] }),
      state: { focused: true },
      createOutputChannel: () => output,
      createStatusBarItem: () => statusBar,
      setStatusBarMessage: (text) => messages.push(text),
      showErrorMessage: async (text) => void messages.push(text),
      showWarningMessage: async (text) => void messages.push(text),
      showInformationMessage: async (text) => void messages.push(text),
      withProgress: (_, work) => work({ report() {} }, new CancellationTokenSource().token),
      showTextDocument: async (shown, options) => void (host.shown = { shown, options }),
    }),
    commands: tolerant({
      registerCommand: (name, run) => {
        commands.set(name, run);
        return new Disposable(() => commands.delete(name));
      },
      executeCommand: (name, ...values) => commands.get(name)(...values),
    }),
  });

  function open(path, languageId, text) {
    const document = TextDocument.create(URI.file(path).toString(), languageId, 1, text);
    const opened = {
      uri: URI.file(path), fileName: path, languageId, version: 1, isClosed: false, isDirty: true,
      offsetAt: (position) => document.offsetAt(position),
      getText: (range) => document.getText(range),
      lineCount: document.lineCount,
    };
    textDocuments.push(opened);
    vscode.window.activeTextEditor = { document: opened, selection: { active: document.positionAt(text.length) } };
    events.open.fire(opened);
    return opened;
  }

  const load = Module._load;
  Module._load = (request, ...rest) => (request === 'vscode' ? vscode : load(request, ...rest));
  const host = { vscode, open, providers, commands, statusBar, messages, CancellationTokenSource, Position };
  return host;
}

module.exports = { createHost };
