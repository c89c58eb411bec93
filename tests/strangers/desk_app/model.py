"""The model: it looks an order up, refunds it when it is lost, and says what it did."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult


def call(name: str, call_id: str, /, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": call_id, "type": "tool_call"}])


def decide(messages: list[BaseMessage], bound: frozenset[str]) -> AIMessage:
    asked = max(at for at, message in enumerate(messages) if isinstance(message, HumanMessage))
    said = {message.name: message.text for message in messages[asked:] if isinstance(message, ToolMessage)}
    if "task" in bound:
        if "task" not in said:
            return call("task", "t1", description="What happened to A1?", subagent_type="researcher")
        return AIMessage(f"Done: {said['task']}")
    if "lookup_order" in bound and "lookup_order" not in said:
        return call("lookup_order", "c1", order_id="A1")
    if "lookup_order" in said and "lost" not in said["lookup_order"]:
        return AIMessage("No refund is due.")
    if "transfer_to_refunds" in bound and "transfer_to_refunds" not in said:
        return call("transfer_to_refunds", "h1")
    if "issue_refund" in bound and "issue_refund" not in said:
        return call("issue_refund", "r1", order_id="A1")
    return AIMessage(said.get("issue_refund", "There is nothing to do."))


class Model(BaseChatModel):
    bound: frozenset[str] = frozenset()

    @property
    def _llm_type(self) -> str:
        return "desk"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        names = [each["function"]["name"] if isinstance(each, dict) else each.name for each in tools]
        return self.model_copy(update={"bound": frozenset(names)})

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=decide(messages, self.bound))])
