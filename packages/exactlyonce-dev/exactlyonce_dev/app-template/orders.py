"""Orders of a shop, and its stock: business code. It knows no store, no queue and no retry."""

from pydantic import BaseModel

from exactlyonce import Context, Destination, Entity, Outbox, message


@message("shop.order-line")
class OrderLine(BaseModel):
    order: str
    item: str
    quantity: int


@message("shop.reserve")
class Reserve(BaseModel):
    order: str
    item: str
    quantity: int


class Order(BaseModel):
    lines: dict[str, int] = {}


class Stock(BaseModel):
    reserved: int = 0


orders = Entity("order", state=Order, container="orders", partition_key="/order", strategy=Outbox())
stocks = Entity("stock", state=Stock, container="stocks", partition_key="/item", strategy=Outbox())
to_orders = Destination("orders", receives=(OrderLine,), to=orders)
to_stocks = Destination("stocks", receives=(Reserve,), to=stocks)


@orders.handles(OrderLine, key=lambda line: line.order)
def add_line(state: Order, line: OrderLine, context: Context) -> Order:
    """Add a line to an order, and let the stock reserve it."""
    context.send(to_stocks, Reserve(order=line.order, item=line.item, quantity=line.quantity))
    return Order(lines={**state.lines, line.item: state.lines.get(line.item, 0) + line.quantity})


@stocks.handles(Reserve, key=lambda reserve: reserve.item)
def reserve(state: Stock, reserve: Reserve, context: Context) -> Stock:
    """Reserve what was ordered."""
    return Stock(reserved=state.reserved + reserve.quantity)
