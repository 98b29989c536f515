// Everything that the app needs in Azure, in one resource group. Nobody holds a key: whoever calls, calls as the identity that is
// made here, and the accounts refuse keys altogether.
//
// main.parameters.json says what differs from app to app: database, containers, queues, settings. tests/test_infra.py compares it
// with what the app declares.

targetScope = 'subscription'

@minLength(1)
@maxLength(40)
@description('Name of the azd environment. Names of resources are made of it.')
param environmentName string

@description('Region of everything. It has to offer Flex Consumption: az functionapp list-flexconsumption-locations.')
@metadata({ azd: { type: 'location' } })
param location string

param databaseName string

@description('Containers of entities, each with its partition key, such as { name: \'orders\', paths: [\'/order\'] }.')
param containers array

@description('Queues with a trigger. Their poison queues are made as well.')
param triggeredQueues string[]

@description('Queues that are only sent to; another application reads them.')
param outputQueues string[]

@description('Settings that your code reads besides those of the library.')
param settings object

@allowed(['serverless', 'autoscale'])
@description('How Cosmos DB is paid for. Serverless costs nothing at rest. An account cannot change from one to the other.')
param cosmosCapacity string

@minValue(1000)
@maxValue(1000000)
@description('With autoscale: most request units per second of each container. A tenth of it is paid for at rest.')
param autoscaleMaxThroughput int = 1000

@minValue(1)
@maxValue(7)
@description('Days that a message may wait in its queue. At most 7: so long a storage queue can delay it.')
param deliveryLimitDays int = 7

@minValue(2)
@description('Days for which messages are known. The app refuses less than the delivery limit asks for.')
param retentionDays int = 30

@minValue(1)
@maxValue(1000)
@description('Most instances of the function app.')
param maximumInstanceCount int = 40

@allowed(['Enabled', 'Disabled'])
@description('Whether storage and Cosmos DB listen on public addresses. Disabled needs private endpoints of yours.')
param publicNetworkAccess string

@description('Subnet, delegated to Microsoft.App/environments, that the function app calls from. Empty for none.')
param appSubnetId string

var token = toLower(uniqueString(subscription().id, environmentName, location))
var tags = { 'azd-env-name': environmentName }
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
    sparkPrincipalId: ''
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
    settings: settings
    serviceBusHost: ''
    insightsAddress: monitoring.outputs.insightsAddress
    telemetry: false
    maximumInstanceCount: maximumInstanceCount
    alwaysReady: 0
    queueFunctions: []
    subnetId: appSubnetId
  }
}

// Addresses and names only. azd keeps outputs in a file.
output AZURE_LOCATION string = location
output AZURE_RESOURCE_GROUP string = group.name
output AZURE_FUNCTION_APP_NAME string = function.outputs.name
output AZURE_FUNCTION_APP_ADDRESS string = function.outputs.address
