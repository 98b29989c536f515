// Service Bus, in place of storage queues: see docs/howto/service-bus.md for when. Optional.

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

@description('Whether queues with a trigger have sessions. A queue cannot change that later: delete it first.')
param sessions bool

@description('Whether the host may ask how long a queue is, to scale by it. The question takes the right to manage the queue.')
param scalesByLength bool

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
// Who may not ask for a queue's length scales by the age of its first message, one instance at a time (ServiceBusMetricsProvider.cs).
var receiving = [
  {
    roleDefinitionIdOrName: scalesByLength ? 'Azure Service Bus Data Owner' : 'Azure Service Bus Data Receiver'
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
    // Copies of a send that was repeated are dropped. It saves work; correctness never rests on it. Not for longer: whatever
    // else has the same id within that time is dropped too, without a word.
    queues: concat(
      map(triggeredQueues, queue => {
        name: queue
        defaultMessageTimeToLive: limit
        deadLetteringOnMessageExpiration: true
        requiresDuplicateDetection: true
        duplicateDetectionHistoryTimeWindow: 'PT10M'
        requiresSession: sessions
        lockDuration: 'PT5M'
        maxDeliveryCount: 10
        roleAssignments: concat(receiving, sending)
      }),
      map(outputQueues, queue => {
        name: queue
        defaultMessageTimeToLive: limit
        deadLetteringOnMessageExpiration: true
        requiresDuplicateDetection: true
        duplicateDetectionHistoryTimeWindow: 'PT10M'
        roleAssignments: sending
      })
    )
  }
}

@description('Host name: what `<connection>__fullyQualifiedNamespace` wants.')
output host string = first(split(replace(bus.outputs.serviceBusEndpoint, 'https://', ''), ':'))
