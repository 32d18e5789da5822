"""The protocol with one-line errors in place of stack traces."""

from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.protocol import LanguageServerProtocol


class PlainProtocol(LanguageServerProtocol):
    """Responds to malformed requests too, and hides the details of internal errors."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Parse a message; respond with an error to an invalid request."""
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
