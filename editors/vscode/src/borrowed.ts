// The functions that suggestions borrow from: shown on hover over accepted text, and by a command.

import * as vscode from 'vscode';
import type { LanguageClient } from 'vscode-languageclient/node';

const SOURCE = 'redraft/source';
const MAX_ACCEPTED = 200;

interface Source {
  title: string;
  source: string;
  language: string;
  file: string | null;
  line: number | null;
}

interface Accepted {
  document: string;
  text: string;
  source: Source;
}

interface Suggestion {
  document: string;
  line: number;
  id: string;
}

type InlineItems = vscode.InlineCompletionItem[] | vscode.InlineCompletionList | null | undefined;

export class BorrowedCode implements vscode.HoverProvider, vscode.TextDocumentContentProvider {
  static readonly scheme = 'redraft-source';

  private readonly accepted: Accepted[] = [];
  private readonly texts = new Map<string, string>();
  private latest: Suggestion | undefined;

  constructor(private readonly client: () => LanguageClient | undefined) {}

  /** Remember the source of the first suggestion at a position. */
  suggested(document: vscode.TextDocument, position: vscode.Position, items: InlineItems): void {
    const list = Array.isArray(items) ? items : (items?.items ?? []);
    const id = list[0]?.command?.arguments?.[0];
    this.latest =
      typeof id === 'string' ? { document: document.uri.toString(), line: position.line, id } : undefined;
  }

  /** Remember the source of a suggestion that was inserted into the active editor. */
  async accept(id: string, text: string): Promise<void> {
    const document = vscode.window.activeTextEditor?.document;
    const source = await this.request(id);
    if (document && source) {
      this.accepted.push({ document: document.uri.toString(), text, source });
      this.accepted.splice(0, this.accepted.length - MAX_ACCEPTED);
    }
  }

  /** Show the source of accepted text under the mouse. */
  provideHover(document: vscode.TextDocument, position: vscode.Position): vscode.Hover | undefined {
    const found = this.acceptedAt(document, position);
    if (!found) {
      return undefined;
    }
    const text = new vscode.MarkdownString();
    text.appendText(`Redraft: ${found.source.title}`);
    text.appendCodeblock(found.source.source, found.source.language);
    return new vscode.Hover(text);
  }

  /** Open the function that the suggestion or the accepted text at the cursor borrows from. */
  async show(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const source = editor && (await this.sourceAt(editor));
    if (!source) {
      vscode.window.setStatusBarMessage('Redraft: nothing was borrowed here', 3000);
      return;
    }
    const file = await locate(source);
    if (file) {
      const line = Math.max(0, (source.line ?? 1) - 1);
      const selection = new vscode.Range(line, 0, line, 0);
      await vscode.window.showTextDocument(file, { viewColumn: vscode.ViewColumn.Beside, selection });
      return;
    }
    const uri = vscode.Uri.from({ scheme: BorrowedCode.scheme, path: `/${source.title}` });
    this.texts.set(uri.toString(), source.source);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, source.language);
    await vscode.window.showTextDocument(document, vscode.ViewColumn.Beside);
  }

  /** Return the text of a function whose file is not in the workspace. */
  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? '';
  }

  private async sourceAt(editor: vscode.TextEditor): Promise<Source | undefined> {
    const { document, selection } = editor;
    const accepted = this.acceptedAt(document, selection.active);
    if (accepted) {
      return accepted.source;
    }
    const latest = this.latest;
    const isHere = latest?.document === document.uri.toString() && latest.line === selection.active.line;
    return isHere ? this.request(latest.id) : undefined;
  }

  private acceptedAt(document: vscode.TextDocument, position: vscode.Position): Accepted | undefined {
    const offset = document.offsetAt(position);
    const text = document.getText();
    const uri = document.uri.toString();
    return this.accepted.findLast((one) => {
      // around the position: the text may stand elsewhere too
      const start = text.indexOf(one.text.trim(), Math.max(0, offset - one.text.length));
      return one.document === uri && start >= 0 && start <= offset && offset <= start + one.text.length;
    });
  }

  private async request(id: string): Promise<Source | undefined> {
    return (await this.client()?.sendRequest<Source | null>(SOURCE, { id })) ?? undefined;
  }
}

async function locate(source: Source): Promise<vscode.Uri | undefined> {
  for (const folder of source.file ? (vscode.workspace.workspaceFolders ?? []) : []) {
    const uri = vscode.Uri.joinPath(folder.uri, source.file!);
    try {
      await vscode.workspace.fs.stat(uri);
      return uri;
    } catch {
      // in another folder, or changed since it was indexed
    }
  }
  return undefined;
}
