/** Queue plugin of Haraka for the benchmark: a file for each mail, on disk before the answer. */
const fs = require("node:fs")
const path = require("node:path")

const folder = path.join(process.env.HARAKA, "queue")

function queue(next, { transaction }) {
  const file = path.join(folder, transaction.uuid)
  const stream = fs.createWriteStream(file, { flags: "wx", flush: true }) // flush: fsync before close
  stream.on("error", (error) => next(DENYSOFT, error.message))
  stream.on("close", () => next(OK, transaction.uuid))
  transaction.message_stream.pipe(stream)
}

exports.hook_queue = queue
exports.hook_queue_outbound = queue // of a client that logged in
