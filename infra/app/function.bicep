// The function app, on Flex Consumption. Its settings are those that the library, the host and the app read.

param token string
param location string
param tags object

@description('Resource id of the identity that the app runs as.')
param identityId string

@description('Client id of the same identity.')
param clientId string

param blobServiceUri string
param queueServiceUri string
param deploymentContainer string
param blobContainer string
param cosmosEndpoint string
param databaseName string
param libraryContainer string
param deliveryLimitDays int
param retentionDays int

@description('Settings that the app reads besides.')
param settings object

@description('Host name of the Service Bus namespace; empty where the app runs on storage queues.')
param serviceBusHost string

@description('Where to send telemetry.')
param insightsAddress string

@description('Whether the app sends metrics and spans, too.')
param telemetry bool

@allowed([512, 2048, 4096])
@description('Memory of an instance, in MB.')
param instanceMemoryMB int = 2048

param maximumInstanceCount int

@description('Instances of each group that never end: the HTTP functions, and each function of a queue.')
param alwaysReady int

@description('Names of the functions of queues.')
param queueFunctions string[]

@description('Subnet that the app calls from; empty for none.')
param subnetId string

var bus = empty(serviceBusHost) ? {} : {
  EXACTLYONCE__transport: 'servicebus'
  ServiceBus__fullyQualifiedNamespace: serviceBusHost
  ServiceBus__credential: 'managedidentity'
  ServiceBus__clientId: clientId
}

// The worker configures the SDK of Azure Monitor, and host and app write into one trace. Only the first needs a package.
var observed = telemetry
  ? { PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY: 'true', AzureFunctionsJobHost__telemetryMode: 'OpenTelemetry' }
  : {}

// HTTP functions share instances; every other function has instances of its own.
var groups = concat(['http'], map(queueFunctions, name => 'function:${name}'))
var ready = alwaysReady == 0 ? {} : {
  alwaysReady: map(groups, group => { name: group, instanceCount: alwaysReady })
}

module plan 'br/public:avm/res/web/serverfarm:0.7.0' = {
  name: 'plan'
  params: {
    name: 'plan-${token}'
    location: location
    tags: tags
    skuName: 'FC1'
    kind: 'functionapp'
    reserved: true
    zoneRedundant: false
  }
}

module app 'br/public:avm/res/web/site:0.24.0' = {
  name: 'function-app'
  params: {
    name: 'func-${token}'
    location: location
    tags: tags
    kind: 'functionapp,linux'
    serverFarmResourceId: plan.outputs.resourceId
    managedIdentities: { userAssignedResourceIds: [identityId] }
    httpsOnly: true
    clientAffinityEnabled: false
    publicNetworkAccess: 'Enabled'
    virtualNetworkSubnetResourceId: empty(subnetId) ? null : subnetId
    siteConfig: {
      alwaysOn: false
      minTlsVersion: '1.2'
    }
    // Publishing with user name and password is off. func and azd publish as who is signed in.
    basicPublishingCredentialsPolicies: [
      { name: 'scm', allow: false }
      { name: 'ftp', allow: false }
    ]
    functionAppConfig: {
      runtime: {
        name: 'python'
        version: '3.11'
      }
      scaleAndConcurrency: union(ready, {
        instanceMemoryMB: instanceMemoryMB
        maximumInstanceCount: maximumInstanceCount
      })
      deployment: {
        storage: {
          type: 'blobContainer'
          value: '${blobServiceUri}${deploymentContainer}'
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: identityId
          }
        }
      }
    }
    configs: [
      {
        name: 'appsettings'
        // What is not named here is not set. It also spares this deployment from listing the settings there are.
        retainCurrentAppSettings: false
        properties: union(settings, bus, observed, {
          // The two services by address: with accountName alone, the host would look for tables, too.
          AzureWebJobsStorage__blobServiceUri: blobServiceUri
          AzureWebJobsStorage__queueServiceUri: queueServiceUri
          AzureWebJobsStorage__credential: 'managedidentity'
          AzureWebJobsStorage__clientId: clientId
          COSMOS__accountEndpoint: cosmosEndpoint
          COSMOS__database: databaseName
          COSMOS__clientId: clientId
          EXACTLYONCE__container: libraryContainer
          EXACTLYONCE__connection: 'AzureWebJobsStorage'
          EXACTLYONCE__blobContainer: blobContainer
          EXACTLYONCE__deliveryLimit: 'P${deliveryLimitDays}D'
          EXACTLYONCE__retention: 'P${retentionDays}D'
          APPLICATIONINSIGHTS_CONNECTION_STRING: insightsAddress
          APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${clientId};Authorization=AAD'
        })
      }
    ]
  }
}

output name string = app.outputs.name
output address string = 'https://${app.outputs.defaultHostname}'
