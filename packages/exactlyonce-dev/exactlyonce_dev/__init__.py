"""exactlyonce on a developer's machine: `exactlyonce new` and `exactlyonce dev`.

new      writes an app from the template
dev      the supervisor: starts the parts of a local stack, and starts the host again when a file of the app changes
plan     what the settings of an app ask for: ports, and whether Service Bus is used
story    the latest deliveries of the app, over all of its processes
flow     deliveries that are connected by entities, or by what caused what
copying  writes a flow as a test of the app; `literals` writes its values
trouble  lost replies, throttling and lagging replicas, on request
console  the page that shows the app, and its server
account  the same page on an account, with the operator's identity
tied     runs a part, and ends it with the supervisor, even if that was killed
parts    a process whose output is read line by line
host     the process of the app: creates what it declares, and serves its functions
backstage  answers the console in the process of the app; `acting` requeues, discards and sends again
witness  tells the console what becomes of each delivery; `steps` has its words
"""

__version__ = "0.1.0"
