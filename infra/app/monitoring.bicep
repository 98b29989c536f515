// Logs and traces. Ingestion wants an identity; the address alone lets nobody in.

param token string
param location string
param tags object

@description('Object id of the identity that the function app runs as.')
param principalId string

module workspace 'br/public:avm/res/operational-insights/workspace:0.16.1' = {
  name: 'log-analytics'
  params: {
    name: 'log-${token}'
    location: location
    tags: tags
    dataRetention: 30
    features: { disableLocalAuth: true }
  }
}

module insights 'br/public:avm/res/insights/component:0.8.0' = {
  name: 'application-insights'
  params: {
    name: 'appi-${token}'
    location: location
    tags: tags
    workspaceResourceId: workspace.outputs.resourceId
    retentionInDays: 30
    disableLocalAuth: true
    disableIpMasking: false
    roleAssignments: [
      {
        roleDefinitionIdOrName: 'Monitoring Metrics Publisher'
        principalId: principalId
        principalType: 'ServicePrincipal'
      }
    ]
  }
}

@description('Resource id of Application Insights.')
output insightsId string = insights.outputs.resourceId

@description('What the host calls a connection string: where to send telemetry. Sending takes the identity.')
output insightsAddress string = insights.outputs.connectionString
