import { generateKeyPairSync } from "node:crypto"
import { openssl } from "../../src/core/rsa"

// Prints by how many bytes the process grew over many signatures, in a process that does nothing else.
const sign = openssl()
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 1024 })
const data = Buffer.alloc(64, "a")

function growth(): number {
  for (let count = 0; count < 6_000; count++) sign?.(data, privateKey)
  Bun.gc(true)
  return process.memoryUsage.rss()
}

growth()
const before = growth()
growth()
console.log(growth() - before)
