// Everything that the application needs in Azure, in one resource group. Nobody holds a key: whoever calls, calls as the
// identity that is made here, and the accounts refuse keys altogether.
//
// The names of containers and queues are those that function_app.py and the handlers declare; tests/infra compares them.

targetScope = 'subscription'

@minLength(1)
@maxLength(40)
@description('Name of the azd environment. Names of resources are made of it.')
param environmentName string

@description('Region of everything. It has to offer Flex Consumption: az functionapp list-flexconsumption-locations.')
@metadata({ azd: { type: 'location' } })
param location string

@description('Who deploys. Becomes administrator of the Synapse workspace, if there is one; of nothing else.')
param principalId string = ''

@allowed(['serverless', 'autoscale'])
@description('How Cosmos DB is paid for. Serverless costs nothing at rest. An account cannot change from one to the other.')
param cosmosCapacity string = 'serverless'

@minValue(1000)
@maxValue(1000000)
@description('With autoscale: most request units per second of each container. A tenth of it is paid for at rest.')
param autoscaleMaxThroughput int = 1000

@minValue(1)
@maxValue(7)
@description('Days that a message may wait in its queue. At most 7: so long a storage queue can delay it.')
param deliveryLimitDays int = 7

@minValue(2)
@description('Days for which messages are known. The app refuses less than the delivery limit asks for. To change it later, see docs/howto/operations.md.')
param retentionDays int = 30

@minValue(1)
@maxValue(1000)
@description('Most instances of the function app.')
param maximumInstanceCount int = 40

@allowed(['Enabled', 'Disabled'])
@description('Whether storage, Cosmos DB and Service Bus listen on public addresses. Disabled needs private endpoints of yours.')
param publicNetworkAccess string = 'Enabled'

@description('Subnet, delegated to Microsoft.App/environments, that the function app calls from. Empty for none.')
param appSubnetId string = ''

@description('Whether to make a Service Bus namespace, and to run the app on it in place of storage queues.')
param deployServiceBus bool = false

@description('With Service Bus: whether queues with a trigger have sessions, so that one entity is processed in one place at a time. function_app.py says once.serve_on(app, sessions=True) then.')
param serviceBusSessions bool = false

@description('With Service Bus: whether the host may ask how long a queue is, to scale by it.')
param serviceBusScalesByLength bool = false

@minValue(0)
@maxValue(20)
@description('Instances of the HTTP functions, and of each queue function, that never end. They are paid for at rest.')
param alwaysReady int = 0

@description('Whether the app sends metrics and spans, with the workbook and alarms over them. requirements.txt needs one more line then.')
param telemetry bool = false

@description('With telemetry: address that alarms are mailed to. Empty for none.')
param alarmEmail string = ''

@description('Whether to make a Synapse workspace with a Spark pool, for audit and clean-up.')
param deploySpark bool = false

@description('Object id of the service principal that Spark jobs sign in as, here or elsewhere. Empty for the identity of the workspace.')
param sparkPrincipalId string = ''

@description('With Spark: addresses that may reach the workspace, each { name, startIpAddress, endIpAddress }.')
param synapseClients array = []

var token = toLower(uniqueString(subscription().id, environmentName, location))
var tags = { 'azd-env-name': environmentName }

// What a queue trigger of function_app.py reads, and where handlers send besides.
var triggeredQueues = ['shooting-range', 'leader-board']
var outputQueues = ['audience']
var queueFunctions = ['process_shooting_range', 'process_leader_board']

// What the handlers declare.
var containers = [
  { name: 'games', paths: ['/gameId'] }
  { name: 'boards', paths: ['/gameId'] }
]

var databaseName = 'shooting-range'
var libraryContainer = 'exactlyonce'
var blobContainer = 'exactlyonce'
var deploymentContainer = 'app-package'

resource group 'Microsoft.Resources/resourceGroups@2021-04-01' = {
  name: 'rg-${environmentName}'
  location: location
  tags: tags
}

module identity 'br/public:avm/res/managed-identity/user-assigned-identity:0.6.0' = {
  name: 'identity'
  scope: group
  params: {
    name: 'id-${token}'
    location: location
    tags: tags
  }
}

module monitoring 'app/monitoring.bicep' = {
  name: 'monitoring'
  scope: group
  params: {
    token: token
    location: location
    tags: tags
    principalId: identity.outputs.principalId
  }
}

module alarms 'app/alarms.bicep' = if (telemetry) {
  name: 'alarms'
  scope: group
  params: {
    token: token
    location: location
    tags: tags
    insightsId: monitoring.outputs.insightsId
    email: alarmEmail
  }
}

module storage 'app/storage.bicep' = {
  name: 'storage'
  scope: group
  params: {
    name: 'st${token}'
    location: location
    tags: tags
    principalId: identity.outputs.principalId
    triggeredQueues: triggeredQueues
    outputQueues: outputQueues
    blobContainer: blobContainer
    deploymentContainer: deploymentContainer
    // A parked message may be sent again as long as its mark could still be found, and then wait once more.
    claimCheckDays: deliveryLimitDays + retentionDays
    publicNetworkAccess: publicNetworkAccess
  }
}

module synapse 'app/synapse.bicep' = if (deploySpark) {
  name: 'synapse'
  scope: group
  params: {
    token: token
    location: location
    tags: tags
    administratorId: principalId
    clients: synapseClients
  }
}

module cosmos 'app/cosmos.bicep' = {
  name: 'cosmos'
  scope: group
  params: {
    name: 'cosmos-${token}'
    location: location
    tags: tags
    databaseName: databaseName
    containers: containers
    libraryContainer: libraryContainer
    capacity: cosmosCapacity
    autoscaleMaxThroughput: autoscaleMaxThroughput
    principalId: identity.outputs.principalId
    sparkPrincipalId: empty(sparkPrincipalId) ? deploySpark ? synapse!.outputs.principalId : '' : sparkPrincipalId
    publicNetworkAccess: publicNetworkAccess
  }
}

module serviceBus 'app/service-bus.bicep' = if (deployServiceBus) {
  name: 'service-bus'
  scope: group
  params: {
    name: 'sb-${token}'
    location: location
    tags: tags
    principalId: identity.outputs.principalId
    triggeredQueues: triggeredQueues
    outputQueues: outputQueues
    deliveryLimitDays: deliveryLimitDays
    sessions: serviceBusSessions
    scalesByLength: serviceBusScalesByLength
    publicNetworkAccess: publicNetworkAccess
  }
}

module function 'app/function.bicep' = {
  name: 'function'
  scope: group
  params: {
    token: token
    location: location
    // azd finds by this tag where to put the service of azure.yaml.
    tags: union(tags, { 'azd-service-name': 'api' })
    identityId: identity.outputs.resourceId
    clientId: identity.outputs.clientId
    blobServiceUri: storage.outputs.blobServiceUri
    queueServiceUri: storage.outputs.queueServiceUri
    deploymentContainer: deploymentContainer
    blobContainer: blobContainer
    cosmosEndpoint: cosmos.outputs.endpoint
    databaseName: databaseName
    libraryContainer: libraryContainer
    deliveryLimitDays: deliveryLimitDays
    retentionDays: retentionDays
    settings: {}
    serviceBusHost: deployServiceBus ? serviceBus!.outputs.host : ''
    insightsAddress: monitoring.outputs.insightsAddress
    telemetry: telemetry
    maximumInstanceCount: maximumInstanceCount
    alwaysReady: alwaysReady
    queueFunctions: queueFunctions
    subnetId: appSubnetId
  }
}

// Addresses and names only. azd keeps outputs in a file.
output AZURE_LOCATION string = location
output AZURE_RESOURCE_GROUP string = group.name
output AZURE_FUNCTION_APP_NAME string = function.outputs.name
output AZURE_FUNCTION_APP_ADDRESS string = function.outputs.address
output COSMOS_ACCOUNT_ENDPOINT string = cosmos.outputs.endpoint
output COSMOS_DATABASE string = databaseName
output SERVICE_BUS_NAMESPACE string = deployServiceBus ? serviceBus!.outputs.host : ''
output SYNAPSE_WORKSPACE string = deploySpark ? synapse!.outputs.name : ''
output SYNAPSE_DATA_LAKE string = deploySpark ? synapse!.outputs.lake : ''
