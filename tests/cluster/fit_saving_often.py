"""`redraft` with a checkpoint after every step, so that a killed worker loses at most one."""

from redraft.cli.app import main
from redraft.training import trainer

if __name__ == "__main__":
    trainer.SAVE_SECONDS = 0.0
    main()
