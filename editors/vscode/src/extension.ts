// Connects the editor to `redraft lsp`: inline completion, the source of a suggestion, the status bar.

import * as vscode from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';

import { BorrowedCode } from './borrowed';
import { createClient, LANGUAGES } from './client';
import { IndexStatus } from './status';

const INDEX_CHANGED = '$/redraft/index';

let client: LanguageClient | undefined;
let restarts = Promise.resolve();

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const status = new IndexStatus();
  const borrowed = new BorrowedCode(() => client);

  /** Restart after the restarts that are under way: a client that is starting cannot be stopped. */
  function restart(): Promise<void> {
    restarts = restarts.then(start);
    return restarts;
  }

  async function start(): Promise<void> {
    await stop();
    status.starting();
    client = createClient(borrowed);
    client.onNotification(INDEX_CHANGED, (index: { functions: number }) => status.indexed(index.functions));
    try {
      await client.start();
      status.running();
    } catch (error) {
      status.failed(error);
    }
  }

  context.subscriptions.push(
    status,
    vscode.languages.registerHoverProvider([...LANGUAGES], borrowed),
    vscode.workspace.registerTextDocumentContentProvider(BorrowedCode.scheme, borrowed),
    vscode.commands.registerCommand('redraft.showSource', () => borrowed.show()),
    vscode.commands.registerCommand('redraft.accepted', (id: string, text: string) => borrowed.accept(id, text)),
    vscode.commands.registerCommand('redraft.restart', restart),
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration('redraft')) {
        await restart();
      }
    }),
  );
  await restart();
}

export async function deactivate(): Promise<void> {
  await restarts;
  await stop();
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  if (running?.needsStop()) {
    await running.stop().catch(() => {}); // one that hangs or has crashed is given up
  }
}
