from exactlyonce.testing import App, assert_deterministic, run
from orders import Order, OrderLine, Reserve, Stock, add_line, orders, reserve, stocks, to_orders, to_stocks


def test_a_line_is_added_and_reserved() -> None:
    ran = run(add_line, Order(lines={"tea": 1}), OrderLine(order="o-1", item="tea", quantity=2))
    assert ran.state.lines == {"tea": 3}
    assert ran.messages == (Reserve(order="o-1", item="tea", quantity=2),)


def test_the_stock_keeps_what_is_reserved() -> None:
    assert run(reserve, Stock(reserved=1), Reserve(order="o-1", item="tea", quantity=2)).state.reserved == 3


def test_handlers_give_the_same_again() -> None:
    assert_deterministic(add_line, Order(), OrderLine(order="o-1", item="tea", quantity=2))


def test_a_line_is_reserved_once_though_every_message_comes_twice() -> None:
    app = App(orders, stocks, destinations=(to_orders, to_stocks))
    app.duplicate_everything()
    app.send(orders, OrderLine(order="o-1", item="tea", quantity=2))
    assert app.state(stocks, "tea") == Stock(reserved=2)
