// The client of the language server, with the settings of the editor.

import * as vscode from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';

import type { BorrowedCode } from './borrowed';

export const LANGUAGES: readonly string[] = [
  'python',
  'javascript',
  'javascriptreact',
  'typescript',
  'typescriptreact',
  'java',
  'go',
];

/** Return a client that starts the program of the settings and asks it for inline completions. */
export function createClient(borrowed: BorrowedCode): LanguageClient {
  const settings = vscode.workspace.getConfiguration('redraft');
  return new LanguageClient(
    'redraft',
    'Redraft',
    {
      command: settings.get<string>('command', 'redraft'),
      args: settings.get<string[]>('arguments', ['lsp']),
    },
    {
      documentSelector: LANGUAGES.map((language) => ({ language })),
      initializationOptions: {
        index: settings.get<boolean>('index'),
        without: settings.get<string[]>('without'),
        k: settings.get<number>('suggestions'),
        off: settings.get<string[]>('off'),
        leastProbability: settings.get<number>('leastProbability'),
        leastKeystrokes: settings.get<number>('leastKeystrokes'),
        acceptCommand: 'redraft.accepted',
      },
      middleware: {
        // suggestions are shown inline, and the list is left to the language's own server
        provideCompletionItem: () => undefined,
        provideInlineCompletionItems: async (document, position, context, token, next) => {
          const items = await next(document, position, context, token);
          borrowed.suggested(document, position, items);
          return items;
        },
      },
    },
  );
}
