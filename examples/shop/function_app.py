"""The Functions app of the shop: wiring only."""

import azure.functions as func

from exactlyonce.hosting import ExactlyOnce
from examples.shop.composition import DESTINATIONS, ENTITIES
from examples.shop.customers import customers
from examples.shop.messages import PlaceOrder
from examples.shop.orders import orders
from examples.shop.payments import payments

app = func.FunctionApp(http_auth_level=func.AuthLevel.FUNCTION)
once = ExactlyOnce.from_environment(*ENTITIES, destinations=DESTINATIONS)
once.sweep_on(app)


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


@app.queue_trigger(arg_name="message", queue_name="orders", connection="AzureWebJobsStorage")
async def process_orders(message: func.QueueMessage) -> None:
    """Each message changes its order once."""
    await once.process(message, orders)


@app.queue_trigger(arg_name="message", queue_name="payments", connection="AzureWebJobsStorage")
async def process_payments(message: func.QueueMessage) -> None:
    """Money is taken once."""
    await once.process(message, payments)


@app.queue_trigger(arg_name="message", queue_name="bank", connection="AzureWebJobsStorage")
async def call_bank(message: func.QueueMessage) -> None:
    """The bank is called until it answers, or for a day."""
    await once.call(message)


@app.queue_trigger(arg_name="message", queue_name="bank-poison", connection="AzureWebJobsStorage")
async def settle_bank(message: func.QueueMessage) -> None:
    """A call that its queue gave up on returns there, or its outcome is unknown."""
    await once.settle_call(message)


@app.queue_trigger(arg_name="message", queue_name="customers", connection="AzureWebJobsStorage")
async def process_customers(message: func.QueueMessage) -> None:
    """Each event counts once."""
    await once.process(message, customers)


@app.queue_trigger(arg_name="message", queue_name="orders-poison", connection="AzureWebJobsStorage")
async def settle_orders(message: func.QueueMessage) -> None:
    """A message that its queue gave up on is finished, comes again later, or is parked."""
    await once.settle(message, orders, queue="orders")


@app.queue_trigger(arg_name="message", queue_name="payments-poison", connection="AzureWebJobsStorage")
async def settle_payments(message: func.QueueMessage) -> None:
    """So is one of payments."""
    await once.settle(message, payments, queue="payments")


@app.queue_trigger(arg_name="message", queue_name="customers-poison", connection="AzureWebJobsStorage")
async def settle_customers(message: func.QueueMessage) -> None:
    """And one of customers."""
    await once.settle(message, customers, queue="customers")
