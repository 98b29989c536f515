// Service Bus, for those who want dead-letter queues and duplicate detection. Optional: the sample runs on storage queues.

param name string
param location string
param tags object

@description('Object id of the identity that the function app runs as.')
param principalId string

@description('Queues that the application reads, and sends to.')
param triggeredQueues string[]

@description('Queues that are only sent to.')
param outputQueues string[]

@description('Days that a message may wait in its queue.')
param deliveryLimitDays int

@allowed(['Enabled', 'Disabled'])
@description('Disabled takes the Premium tier, which this file does not choose for you.')
param publicNetworkAccess string

var sending = [
  {
    roleDefinitionIdOrName: 'Azure Service Bus Data Sender'
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
]
var receiving = [
  {
    roleDefinitionIdOrName: 'Azure Service Bus Data Receiver'
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
]
var limit = 'P${deliveryLimitDays}D'

module bus 'br/public:avm/res/service-bus/namespace:0.17.0' = {
  name: 'service-bus-namespace'
  params: {
    name: name
    location: location
    tags: tags
    skuObject: { name: 'Standard' }
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    publicNetworkAccess: publicNetworkAccess
    // Copies with the same message id are dropped as long as one could arrive. It saves work; correctness never rests on it.
    queues: concat(
      map(triggeredQueues, queue => {
        name: queue
        defaultMessageTimeToLive: limit
        deadLetteringOnMessageExpiration: true
        requiresDuplicateDetection: true
        duplicateDetectionHistoryTimeWindow: limit
        lockDuration: 'PT5M'
        maxDeliveryCount: 10
        roleAssignments: concat(receiving, sending)
      }),
      map(outputQueues, queue => {
        name: queue
        defaultMessageTimeToLive: limit
        deadLetteringOnMessageExpiration: true
        requiresDuplicateDetection: true
        duplicateDetectionHistoryTimeWindow: limit
        roleAssignments: sending
      })
    )
  }
}

@description('Host name: what `<connection>__fullyQualifiedNamespace` wants.')
output host string = first(split(replace(bus.outputs.serviceBusEndpoint, 'https://', ''), ':'))
