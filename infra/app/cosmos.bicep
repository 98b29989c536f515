// Cosmos DB as the library verifies it at start-up: one write region, Session consistency, partition keys and time to live as
// declared. The identities get roles of their own, on this database only.

param name string
param location string
param tags object
param databaseName string

@description('Containers of entities, each with its partition key, such as { name: \'orders\', paths: [\'/order\'] }.')
param containers array

@description('Container for pages, books, staged messages and parked messages.')
param libraryContainer string

@allowed(['serverless', 'autoscale'])
param capacity string

@description('With autoscale: most request units per second of each container.')
param autoscaleMaxThroughput int

@description('Object id of the identity that the function app runs as.')
param principalId string

@description('Object id of the identity that Spark jobs run as; empty if there is none.')
param sparkPrincipalId string

@allowed(['Enabled', 'Disabled'])
param publicNetworkAccess string

var accountId = resourceId('Microsoft.DocumentDB/databaseAccounts', name)
var database = '${accountId}/dbs/${databaseName}'
var appRole = guid(accountId, 'application')
var sparkRole = guid(accountId, 'spark')
var throughput = capacity == 'autoscale' ? autoscaleMaxThroughput : null

// A write is paid for by what it indexes. So nothing is indexed but what a query asks for; tests/infra records the queries.
// `id` and `_ts` always are.
var libraryIndexing = {
  indexingMode: 'consistent'
  excludedPaths: [{ path: '/*' }]
  includedPaths: [
    { path: '/pk/?' }
    { path: '/kind/?' }
    // For messages that have left a ledger: by their times, by their hashes, and the newest page.
    { path: '/begin/?' }
    { path: '/until/?' }
    { path: '/number/?' }
    { path: '/hashes/[]/?' }
  ]
}
var ledgerPaths = [
  // For the sweeper: which entities owe outputs, which keep messages that are due, and which read models hold messages.
  { path: '/_ledger/outbox/[]/tx/?' }
  { path: '/_ledger/kept/[]/due/?' }
  { path: '/_ledger/receptions/[]/gap_since/?' }
  { path: '/_ledger/receptions/[]/held/*' }
  // Documents of the library beside entities; those of the outbox have none of these.
  { path: '/_kind/?' }
  { path: '/entity/?' }
  { path: '/version/?' }
  { path: '/owing_since/?' }
  { path: '/outputs/[]/place/channel/?' }
  { path: '/outputs/[]/place/number/?' }
]
// Version 2 of partition keys, since version 1 hashes their first 101 bytes only: the library's are longer.
// Entity containers have no time to live: with an entity goes what is known of its messages.
var entityContainers = map(containers, container => {
  name: container.name
  paths: container.paths
  kind: length(container.paths) == 1 ? 'Hash' : 'MultiHash'
  version: 2
  indexingPolicy: {
    indexingMode: 'consistent'
    excludedPaths: [{ path: '/*' }]
    includedPaths: concat(map(container.paths, path => { path: '${path}/?' }), ledgerPaths)
  }
  autoscaleSettingsMaxThroughput: throughput
})

module account 'br/public:avm/res/document-db/database-account:0.20.0' = {
  name: 'cosmos-account'
  params: {
    name: name
    location: location
    tags: tags
    // Conditions on ETags hold within one region, and a failover that loses the latest writes would lose what was promised.
    // So there is one region; whoever needs a second one needs Strong consistency as well.
    enableMultipleWriteLocations: false
    enableAutomaticFailover: false
    failoverLocations: [
      {
        locationName: location
        failoverPriority: 0
        isZoneRedundant: false
      }
    ]
    defaultConsistencyLevel: 'Session'
    disableLocalAuthentication: true
    disableKeyBasedMetadataWriteAccess: true
    capabilitiesToAdd: capacity == 'serverless' ? ['EnableServerless'] : []
    // Restore all containers to one moment, never one of them alone: ledgers and pages refer to each other.
    backupPolicyType: 'Continuous'
    backupPolicyContinuousTier: 'Continuous7Days'
    networkRestrictions: {
      publicNetworkAccess: publicNetworkAccess
      networkAclBypass: 'None'
    }
    sqlDatabases: [
      {
        name: databaseName
        containers: concat(entityContainers, [
          {
            name: libraryContainer
            paths: ['/pk']
            version: 2
            // Pages and books expire: each has a time to live of its own. What has none stays.
            defaultTtl: -1
            indexingPolicy: libraryIndexing
            autoscaleSettingsMaxThroughput: throughput
          }
        ])
      }
    ]
    sqlRoleDefinitions: [
      {
        name: appRole
        roleName: 'exactlyonce-application'
        assignableScopes: [database]
        // What CosmosStore asks for, and no more. A query through the SDK needs readChangeFeed too, says Microsoft's page.
        dataActions: [
          'Microsoft.DocumentDB/databaseAccounts/readMetadata'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/replace'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/upsert'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/delete'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/readChangeFeed'
        ]
      }
      {
        name: sparkRole
        roleName: 'exactlyonce-spark'
        assignableScopes: [database]
        // Jobs read everything, fence entities (create, replace) and delete what has had its time. They write no pages.
        dataActions: [
          'Microsoft.DocumentDB/databaseAccounts/readMetadata'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/replace'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/delete'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/readChangeFeed'
        ]
      }
    ]
    sqlRoleAssignments: concat(
      [{ roleDefinitionId: appRole, principalId: principalId, scope: database }],
      empty(sparkPrincipalId) ? [] : [{ roleDefinitionId: sparkRole, principalId: sparkPrincipalId, scope: database }]
    )
  }
}

output endpoint string = account.outputs.endpoint
