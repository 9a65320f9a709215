-- One POST after another, each with its own Idempotency-Key. Nothing new is sent after the given
-- seconds, so what was asked is answered when wrk ends, and answers can be compared with rows.
-- wrk -s post.lua URL -- SECONDS BODY_FILE

local ffi = require("ffi")
ffi.cdef [[
  typedef struct { long sec; long nsec; } bench_time;
  int clock_gettime(int id, bench_time *out);
]]
local MONOTONIC = ffi.os == "OSX" and 6 or 1
local time = ffi.new("bench_time")

local function seconds()
  ffi.C.clock_gettime(MONOTONIC, time)
  return tonumber(time.sec) + tonumber(time.nsec) / 1e9
end

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  limit = tonumber(args[1])
  local file = assert(io.open(args[2], "rb"))
  local headers = { ["Content-Type"] = "application/json", ["Idempotency-Key"] = "@@@@" }
  for name, value in pairs(wrk.headers) do headers[name] = value end
  local whole = wrk.format("POST", nil, headers, file:read("*a"))
  file:close()
  local from, to = whole:find("@@@@", 1, true)
  head, tail = whole:sub(1, from - 1), whole:sub(to + 1)
  run = string.format("%x-", math.floor(seconds() * 1e6))
  posted, first, last = -1, nil, 0 -- wrk asks for one request beforehand, only to look at it
end

function request()
  local now = seconds()
  if posted == 0 then first = now end
  if first and now - first > limit then return "" end -- wrk waits for an answer that nobody asked for
  posted, last = posted + 1, now
  return head .. run .. posted .. tail
end

function done(summary, latency)
  local thread = threads[1]
  local errors = summary.errors
  io.write(string.format(
    '\n{"posted":%d,"answered":%d,"seconds":%.6f,"p50_ms":%.3f,"p99_ms":%.3f,"errors":%d}\n',
    thread:get("posted"), summary.requests, thread:get("last") - thread:get("first"),
    latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
