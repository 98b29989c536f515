// Alarms and the workbook, over metrics. Metrics are never sampled; spans and lines of the log may be.

param token string
param location string
param tags object

@description('Resource id of Application Insights, whose metrics the queries read.')
param insightsId string

@description('Address that alarms are mailed to; empty for none, since the portal lists them.')
param email string

// Severity 1 is "error": a person has to act. 2 is "warning".
var alarms = [
  { name: 'silent', severity: 1, query: loadTextContent('../alarms/silent.kusto') }
  { name: 'parked', severity: 1, query: loadTextContent('../alarms/parked.kusto') }
  { name: 'owed', severity: 1, query: loadTextContent('../alarms/owed.kusto') }
  { name: 'unfinished', severity: 2, query: loadTextContent('../alarms/unfinished.kusto') }
  { name: 'failing', severity: 2, query: loadTextContent('../alarms/failing.kusto') }
  { name: 'throttled', severity: 2, query: loadTextContent('../alarms/throttled.kusto') }
  { name: 'waiting', severity: 2, query: loadTextContent('../alarms/waiting.kusto') }
  { name: 'late', severity: 2, query: loadTextContent('../alarms/late.kusto') }
]

resource mail 'Microsoft.Insights/actionGroups@2023-01-01' = {
  name: 'ag-${token}'
  location: 'global'
  tags: tags
  properties: {
    groupShortName: 'exactlyonce'
    enabled: true
    emailReceivers: empty(email) ? [] : [{ name: 'on-call', emailAddress: email, useCommonAlertSchema: true }]
  }
}

resource rules 'Microsoft.Insights/scheduledQueryRules@2023-03-15-preview' = [for alarm in alarms: {
  name: 'exactlyonce-${alarm.name}-${token}'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: 'exactlyonce: ${alarm.name}'
    description: 'docs/howto/on-call.md, "Alarms", says what to do.'
    enabled: true
    severity: alarm.severity
    scopes: [insightsId]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    autoMitigate: true
    criteria: {
      allOf: [
        {
          query: alarm.query
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 0
          failingPeriods: { numberOfEvaluationPeriods: 1, minFailingPeriodsToAlert: 1 }
        }
      ]
    }
    actions: { actionGroups: [mail.id] }
  }
}]

resource workbook 'Microsoft.Insights/workbooks@2022-04-01' = {
  name: guid(insightsId, 'exactlyonce')
  location: location
  tags: tags
  kind: 'shared'
  properties: {
    displayName: 'exactlyonce'
    category: 'workbook'
    sourceId: insightsId
    serializedData: loadTextContent('../dashboard/workbook.json')
  }
}
