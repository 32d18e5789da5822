"""The protocol as an editor may see it: an error is one line, without a stack trace."""

from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.protocol import LanguageServerProtocol


class PlainProtocol(LanguageServerProtocol):
    """Answers every request, also one that cannot be read, and keeps what went wrong inside."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message of the protocol; whoever sent one that is none is told."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def _send_response(
        self,
        msg_id: int | str,
        result: Any | None = None,
        error: types.ResponseError | None = None,
    ) -> None:
        if error is not None:
            is_internal = error.code == JsonRpcInternalError.CODE
            message = JsonRpcInternalError.MESSAGE if is_internal else error.message
            error = types.ResponseError(code=error.code, message=message)
        super()._send_response(msg_id, result, error)
