"""The Functions app of the shop: wiring only."""

import azure.functions as func

from exactlyonce.hosting import ExactlyOnce
from examples.shop.composition import DESTINATIONS, ENTITIES
from examples.shop.customers import customers
from examples.shop.messages import PlaceOrder
from examples.shop.orders import orders

app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)
once = ExactlyOnce.from_environment(*ENTITIES, destinations=DESTINATIONS)
once.serve_on(app)


@app.route("orders/{order}", methods=["PUT"])
async def place_order(req: func.HttpRequest) -> func.HttpResponse:
    """Place an order. A retry under the same Idempotency-Key gets the same answer."""
    order = req.route_params["order"]
    return await once.answer(req, orders, lambda content: PlaceOrder.model_validate({**content, "order": order}))


@app.route("customers/{customer}", methods=["GET"])
async def show_customer(req: func.HttpRequest) -> func.HttpResponse:
    """What a customer has bought."""
    state = await once.read(customers, req.route_params["customer"])
    if state is None:
        return func.HttpResponse("This customer has bought nothing yet.", status_code=404)
    return func.HttpResponse(state.model_dump_json(), mimetype="application/json")
