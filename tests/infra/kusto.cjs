// What Microsoft's own parser says of queries: from stdin {tables: {name: {column: type}}, queries: [text]}, to stdout a list of
// complaints for each query. It binds names and types, too; nothing is run.
require("@kusto/language-service-next/bridge.min.js");
require("@kusto/language-service-next/Kusto.Language.Bridge.min.js");
const { GlobalState, KustoCode, Symbols } = Kusto.Language;

const { tables, queries } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const known = Object.entries(tables).map(([name, columns]) => {
  const schema = Object.entries(columns).map(([column, type]) => `${column}:${type}`).join(",");
  return Symbols.TableSymbol.From(`(${schema})`).WithName(name);
});
const state = GlobalState.Default.WithDatabase(new Symbols.DatabaseSymbol.ctor("insights", known));

const complaints = (text) => {
  const found = KustoCode.ParseAndAnalyze(text, state).GetDiagnostics();
  return Array.from({ length: found.Count }, (_, index) => found.getItem(index).Message);
};
console.log(JSON.stringify(queries.map(complaints)));
