// The packaged bundle, with the client library in it, against a real `redraft lsp`.

'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, before, test } = require('node:test');

const { createHost } = require('./host.cjs');

const PRICES = `def price_with_tax(item, rate):
    net = item.price * item.count
    return net + net * rate


def weight_of(item):
    return item.weight * item.count
`;
const COMMAND = process.env.REDRAFT ?? path.resolve(__dirname, '../../../.venv/bin/redraft');
const DEADLINE = 60_000;

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'redraft-'));
const settings = { command: COMMAND, suggestions: 2, off: ['test_*.py'] };
const subscriptions = [];
let host;
let extension;

async function until(condition) {
  const end = Date.now() + DEADLINE;
  while (!(await condition())) {
    assert.ok(Date.now() < end, `not in time; messages: ${host.messages.join('\n')}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function suggestions(document, line, character) {
  const token = new host.CancellationTokenSource().token;
  const { provider } = host.providers.inline.at(-1);
  const found = await provider.provideInlineCompletionItems(
    document, new host.Position(line, character), { triggerKind: 1 }, token);
  return Array.isArray(found) ? found : (found?.items ?? []);
}

async function restart(changed) {
  Object.assign(settings, changed);
  host.statusBar.text = '';
  await host.commands.get('redraft.restart')();
  await until(() => host.statusBar.text === 'Redraft 2');
}

before(async () => {
  fs.writeFileSync(path.join(folder, 'prices.py'), PRICES);
  host = createHost({ settings, folder });
  extension = require('../dist/extension.js');
  await extension.activate({ subscriptions });
});

after(async () => {
  await extension.deactivate();
  fs.rmSync(folder, { recursive: true });
});

test('the status bar shows the size of the index', async () => {
  await until(() => host.statusBar.text === 'Redraft 2');
  assert.match(host.statusBar.tooltip, /2 functions of the workspace/);
});

test('two changes of the settings at once leave one server that runs', async () => {
  const restart = host.commands.get('redraft.restart');
  await Promise.all([restart(), restart()]);
  await until(() => host.statusBar.text === 'Redraft 2');
  assert.equal(host.providers.inline.length, 1);
});

test('ghost text is suggested, and its source is shown on hover and by the command', async () => {
  const text = 'def price_after_tax(item, rate):\n    net = item.';
  const document = host.open(path.join(folder, 'totals.py'), 'python', text);
  assert.equal(host.providers.inline.length, 1);
  let items = [];
  await until(async () => (items = await suggestions(document, 1, 15)).length > 0);
  assert.ok(items.length <= 2);
  assert.match(items[0].insertText, /^price \* item\.count/);
  assert.match(items[0].command.title, /^\d+%, from price_with_tax, prices\.py:1$/);

  // of a suggestion that is only shown
  await host.commands.get('redraft.showSource')();
  assert.equal(host.shown.shown.fsPath, path.join(folder, 'prices.py'));
  assert.equal(host.shown.options.selection.start.line, 0);

  // the editor inserts the text and runs the command of the item
  const inserted = host.open(path.join(folder, 'totals.py'), 'python', text + items[0].insertText);
  const [hover] = host.providers.hover;
  assert.equal(hover.provideHover(inserted, new host.Position(1, 18)), undefined);
  await host.commands.get(items[0].command.command)(...items[0].command.arguments);
  const { contents } = hover.provideHover(inserted, new host.Position(1, 18));
  assert.match(contents.value, /^Redraft: from price_with_tax, prices\.py:1/);
  assert.match(contents.value, /```python\ndef price_with_tax\(item, rate\):\n {4}net = item\.price/);
  assert.equal(hover.provideHover(inserted, new host.Position(0, 3)), undefined);
});

test('files are quiet that the settings switch off, and so are suggestions that save too little', async () => {
  const text = 'def price_after_tax(item, rate):\n    net = item.';
  const off = host.open(path.join(folder, 'test_totals.py'), 'python', text);
  const on = host.open(path.join(folder, 'sums.py'), 'python', text);
  assert.deepEqual(await suggestions(off, 1, 15), []);
  assert.ok((await suggestions(on, 1, 15)).length > 0);
  await restart({ leastKeystrokes: 1000 });
  const again = host.open(path.join(folder, 'sums.py'), 'python', text);
  assert.deepEqual(await suggestions(again, 1, 15), []);
  await restart({ leastKeystrokes: 0 });
  await until(async () => (await suggestions(again, 1, 15)).length > 0);
});

test('a function whose file is gone is shown as a text of its own', async () => {
  const document = host.open(path.join(folder, 'weights.py'), 'python', 'def weight_of_all(item):\n    return item.weight');
  const [item] = await suggestions(document, 1, 22);
  assert.match(item.insertText, /^ \* item\.count/);
  fs.renameSync(path.join(folder, 'prices.py'), path.join(folder, 'prices.txt'));
  host.vscode.workspace.openTextDocument = async (uri) => ({ uri });
  host.vscode.languages.setTextDocumentLanguage = async () => {};
  await host.commands.get('redraft.showSource')();
  const { uri } = host.shown.shown;
  assert.equal(uri.scheme, 'redraft-source');
  assert.match(host.providers.content[uri.scheme].provideTextDocumentContent(uri), /^def weight_of\(item\):/);
});

test('a program that is missing is named in the status bar', async () => {
  const settings = { get: (name, fallback) => (name === 'command' ? '/missing/redraft' : fallback) };
  host.vscode.workspace.getConfiguration = () => settings;
  await host.commands.get('redraft.restart')();
  assert.match(host.statusBar.text, /warning/);
  assert.match(host.statusBar.tooltip, /pip install/);
});
