// Connects the editor to `redraft lsp`: inline completion, the source of a suggestion, the status bar.

import * as vscode from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';

import { BorrowedCode } from './borrowed';
import { createClient, LANGUAGES } from './client';
import { IndexStatus } from './status';

const INDEX_CHANGED = '$/redraft/index';

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const status = new IndexStatus();
  const borrowed = new BorrowedCode(() => client);

  async function restart(): Promise<void> {
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
  await stop();
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  if (running?.needsStop()) {
    await running.stop();
  }
}
