"""The function app: wiring only. Business code is in `orders`."""

import azure.functions as func

from exactlyonce import read_json
from exactlyonce.hosting import ExactlyOnce
from orders import Order, OrderLine, Stock, orders, stocks, to_orders, to_stocks

app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)
once = ExactlyOnce.from_environment(orders, stocks, destinations=(to_orders, to_stocks))
once.serve_on(app)


@app.route("orders/{order}/lines/{line}", methods=["PUT"])
async def put_line(req: func.HttpRequest) -> func.HttpResponse:
    try:
        given = OrderLine(order=req.route_params["order"], **read_json(req.get_body()))
    except (TypeError, ValueError):
        return func.HttpResponse('The body has to be such as {"item": "tea", "quantity": 2}.', status_code=400)
    await once.send(to_orders, given, message_id=req.route_params["line"], source="http")
    return func.HttpResponse(status_code=202)


@app.route("orders/{order}", methods=["GET"])
async def get_order(req: func.HttpRequest) -> func.HttpResponse:
    return shown(await once.read(orders, req.route_params["order"]))


@app.route("stocks/{item}", methods=["GET"])
async def get_stock(req: func.HttpRequest) -> func.HttpResponse:
    return shown(await once.read(stocks, req.route_params["item"]))


def shown(state: Order | Stock | None) -> func.HttpResponse:
    if state is None:
        return func.HttpResponse(status_code=404)
    return func.HttpResponse(state.model_dump_json(), mimetype="application/json")
