// One storage account: the queues, the blobs, what the host keeps for itself, and the deployed package.

param name string
param location string
param tags object

@description('Object id of the identity that the function app runs as.')
param principalId string

@description('Queues with a trigger. Their poison queues have one as well.')
param triggeredQueues string[]

@description('Queues that are only sent to; another application reads them.')
param outputQueues string[]

@description('Container for the data of large messages, and for blobs that handlers write.')
param blobContainer string

@description('Container that the app is deployed to.')
param deploymentContainer string

@description('Age in days at which the data of a message is deleted: nothing may still refer to it.')
param claimCheckDays int

@allowed(['Standard_LRS', 'Standard_ZRS'])
@description('No geo-replication: it lags behind, and a failover would lose messages that were acknowledged as sent.')
param skuName string = 'Standard_LRS'

@allowed(['Enabled', 'Disabled'])
param publicNetworkAccess string

// The host renews and releases messages with Update Message, which "Message Processor" does not cover although Microsoft's
// page names it (MicrosoftDocs/azure-docs 120932). So Contributor, on each queue by itself.
var processing = [
  {
    roleDefinitionIdOrName: 'Storage Queue Data Contributor'
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
]
var sending = [
  {
    roleDefinitionIdOrName: 'Storage Queue Data Message Sender'
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
]
var keeping = [
  {
    roleDefinitionIdOrName: 'Storage Blob Data Contributor'
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
]

// The host would make its own containers and the poison queues, with a role on the whole account. Made here, a role on each
// is enough: function keys are in azure-webjobs-secrets, leases and host ids in azure-webjobs-hosts.
var hostContainers = ['azure-webjobs-hosts', 'azure-webjobs-secrets']

// The host's health check lists the account's containers every 30 seconds, and is unhealthy for ever if it may not. The right to list
// is on the account or nowhere. A role with that action alone would ask whoever deploys for the right to define roles in the subscription;
// what this one lets the app read besides is in containers that it may write anyway.
var listing = [
  {
    roleDefinitionIdOrName: 'Storage Blob Data Reader'
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
]

module account 'br/public:avm/res/storage/storage-account:0.33.0' = {
  name: 'storage-account'
  params: {
    name: name
    location: location
    tags: tags
    skuName: skuName
    roleAssignments: listing
    allowSharedKeyAccess: false
    allowBlobPublicAccess: false
    minimumTlsVersion: 'TLS1_2'
    publicNetworkAccess: publicNetworkAccess
    networkAcls: {
      bypass: 'AzureServices'
      defaultAction: publicNetworkAccess == 'Enabled' ? 'Allow' : 'Deny'
    }
    queueServices: {
      queues: concat(
        map(triggeredQueues, queue => { name: queue, roleAssignments: processing }),
        // What the host gives up on. The app reads these queues, too: it settles or parks what is there.
        map(triggeredQueues, queue => { name: '${queue}-poison', roleAssignments: processing }),
        map(outputQueues, queue => { name: queue, roleAssignments: sending })
      )
    }
    blobServices: {
      // A deleted blob can be had back for a week: a message whose data is gone is malformed.
      deleteRetentionPolicyEnabled: true
      deleteRetentionPolicyDays: 7
      containerDeleteRetentionPolicyEnabled: true
      containerDeleteRetentionPolicyDays: 7
      containers: map(
        concat([blobContainer, deploymentContainer], hostContainers),
        container => { name: container, roleAssignments: keeping }
      )
    }
    managementPolicyRules: [
      {
        name: 'claim-checks'
        enabled: true
        type: 'Lifecycle'
        definition: {
          // Only the data of messages. Blobs that handlers wrote are the application's: it knows for how long.
          filters: {
            blobTypes: ['blockBlob']
            prefixMatch: ['${blobContainer}/_messages/']
          }
          actions: { baseBlob: { delete: { daysAfterCreationGreaterThan: claimCheckDays } } }
        }
      }
    ]
  }
}

output blobServiceUri string = account.outputs.serviceEndpoints.blob
output queueServiceUri string = account.outputs.serviceEndpoints.queue
