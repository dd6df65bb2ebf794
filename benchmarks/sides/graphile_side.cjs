// graphile-worker at its best settings: a local queue, completions in batches, no delay between polls that find work.
const { run, makeWorkerUtils, Logger } = require("graphile-worker");
const { counting } = require("./counting.cjs");

const [command, connectionString, size] = process.argv.slice(2);
const CHUNK = 10000;
const quiet = new Logger(() => () => {});

async function work() {
  const ran = counting();
  const alone = process.env.PROCESSES === "1";
  const runner = await run({
    connectionString,
    logger: quiet,
    taskList: { noop: async () => ran() },
    preset: {
      worker: {
        connectionString,
        concurrentJobs: 24,
        maxPoolSize: 10,
        pollInterval: 100,
        localQueue: { size: alone ? 1000 : 500 },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
  });
  await runner.promise;
}

async function main() {
  if (command === "work") return work();
  const utils = await makeWorkerUtils({ connectionString, logger: quiet });
  const jobs = Number(size);
  const began = process.hrtime.bigint();
  if (command === "schema") {
    await utils.migrate();
  } else if (command === "single") {
    for (let n = 0; n < jobs; n += 1) await utils.addJob("noop", { n });
  } else {
    for (let start = 0; start < jobs; start += CHUNK) {
      const batch = [];
      for (let n = start; n < Math.min(start + CHUNK, jobs); n += 1) {
        const key = command === "bulk" ? { jobKey: `key-${n}` } : {};
        batch.push({ identifier: "noop", payload: { n }, ...key });
      }
      const added = await utils.addJobs(batch);
      if (added.length !== batch.length) throw new Error(`${added.length} rows for ${batch.length} jobs`);
    }
  }
  console.log("S", Number(process.hrtime.bigint() - began) / 1e9);
  await utils.release();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
