// What every Node side does the same way: count handlers that ran, and say so every few milliseconds, as counting.py does.
const REPORT_MS = 10;

exports.counting = () => {
  let total = 0;
  let said = 0;
  const say = () => {
    said = total;
    process.stdout.write(`C ${total} ${Date.now() / 1000}\n`);
  };
  setInterval(() => total !== said && say(), REPORT_MS).unref();
  return () => {
    total += 1;
    if (total === 1) say();
  };
};
