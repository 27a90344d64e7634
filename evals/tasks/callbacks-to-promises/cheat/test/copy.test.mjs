// await
