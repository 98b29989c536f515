// A Synapse workspace with a small Spark pool for the jobs in spark_jobs/. Optional. What runs, and when, is in infra/synapse.

param token string
param location string
param tags object

@description('Object id of the administrator; empty for who deploys.')
param administratorId string

@description('Addresses that may reach the workspace, each { name, startIpAddress, endIpAddress }. Without any, nobody may.')
param clients array

// Code of the jobs, reports and archives. Synapse wants a data lake of its own; nothing of the application is in it.
module lake 'br/public:avm/res/storage/storage-account:0.33.0' = {
  name: 'data-lake'
  params: {
    name: 'dls${token}'
    location: location
    tags: tags
    skuName: 'Standard_LRS'
    enableHierarchicalNamespace: true
    allowSharedKeyAccess: false
    allowBlobPublicAccess: false
    minimumTlsVersion: 'TLS1_2'
    publicNetworkAccess: 'Enabled'
    networkAcls: {
      bypass: 'AzureServices'
      defaultAction: 'Allow'
    }
    blobServices: { containers: [{ name: 'jobs' }, { name: 'reports' }] }
  }
}

// Version 0.15.0 is the one in the module's source and change log; that the registry serves it could not be verified.
module workspace 'br/public:avm/res/synapse/workspace:0.15.0' = {
  name: 'synapse-workspace'
  params: {
    name: 'syn-${token}'
    location: location
    tags: tags
    defaultDataLakeStorageAccountResourceId: lake.outputs.resourceId
    defaultDataLakeStorageFilesystem: 'jobs'
    initialWorkspaceAdminObjectID: administratorId
    // The name is required. There is no password, and SQL pools, which there are none of, would take identities only.
    azureADOnlyAuthentication: true
    sqlAdministratorLogin: 'unused'
    firewallRules: clients
    bigDataPools: [
      {
        name: 'exactlyonce'
        sparkVersion: '3.5'
        nodeSizeFamily: 'MemoryOptimized'
        nodeSize: 'Small'
        autoScale: {
          minNodeCount: 3
          maxNodeCount: 5
        }
        autoPauseDelayInMinutes: 5
        libraryRequirements: {
          filename: 'requirements.txt'
          content: loadTextContent('../synapse/requirements.txt')
        }
      }
    ]
  }
}

resource lakeAccount 'Microsoft.Storage/storageAccounts@2024-01-01' existing = {
  name: 'dls${token}'
}

// Not by the module of the account: the identity comes into being with the workspace, which needs the account first.
resource keeping 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(lakeAccount.id, 'syn-${token}', 'Storage Blob Data Contributor')
  scope: lakeAccount
  properties: {
    roleDefinitionId: subscriptionResourceId(
      'Microsoft.Authorization/roleDefinitions',
      'ba92f5b4-2d11-453d-a403-e96b0029c9fe'
    )
    principalId: workspace.outputs.?systemAssignedMIPrincipalId ?? ''
    principalType: 'ServicePrincipal'
  }
}

output name string = workspace.outputs.name

@description('Name of the storage account of the data lake.')
output lake string = lake.outputs.name

@description('Object id of the workspace, which jobs run as.')
output principalId string = workspace.outputs.?systemAssignedMIPrincipalId ?? ''
