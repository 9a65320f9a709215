/** The limit of a start: the compiled runtime with as good as nothing in it. */
if (process.argv.includes("--version")) {
  process.stdout.write("0\n")
} else {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("ok") })
  console.log(JSON.stringify({ url: server.url.href.replace(/\/$/, "") }))
}
