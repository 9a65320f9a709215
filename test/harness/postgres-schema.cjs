// drizzle-kit takes its tables from the exports of a module, and these names are computed.
module.exports = require("./postgres-tables").postgresTables
