// The entry in the status bar: how many functions are indexed.

import * as vscode from 'vscode';

export class IndexStatus implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('redraft.index', vscode.StatusBarAlignment.Right);
  private hasIndex = false;

  constructor() {
    this.item.name = 'Redraft';
    this.item.command = 'redraft.showSource';
    this.item.show();
  }

  starting(): void {
    this.hasIndex = false;
    this.set('$(sync~spin) Redraft', 'Starting the language server');
  }

  /** The server runs; it may have told the size of the index already. */
  running(): void {
    if (!this.hasIndex) {
      this.set('Redraft', 'No function is indexed yet');
    }
  }

  indexed(functions: number): void {
    this.hasIndex = true;
    const count = functions.toLocaleString('en');
    this.set(`Redraft ${count}`, `Redraft: ${count} functions of the workspace are indexed`);
  }

  failed(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.set('$(warning) Redraft', `${reason}\nInstall it with: pip install 'redraft[lsp]', or set redraft.command`);
  }

  dispose(): void {
    this.item.dispose();
  }

  private set(text: string, tooltip: string): void {
    this.item.text = text;
    this.item.tooltip = tooltip;
  }
}
