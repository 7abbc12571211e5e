SELECT COUNT(*) FROM patients
SELECT COUNT(DISTINCT canton) FROM patients
SELECT canton, COUNT(*) AS n FROM patients GROUP BY canton ORDER BY n DESC
SELECT canton, COUNT(*) FROM patients GROUP BY canton HAVING COUNT(*) > 10
SELECT AVG(weight), MIN(weight), MAX(weight) FROM patients
SELECT canton, AVG(weight) FROM patients WHERE weight > 50 GROUP BY canton
SELECT COUNT(*) FROM patients WHERE canton LIKE 'Z%'
SELECT COUNT(*) FROM patients WHERE canton NOT LIKE '%E' AND weight BETWEEN 50 AND 80
SELECT COUNT(*) FROM patients WHERE LOWER(canton) = 'zh' OR UPPER(canton) IN ('BE', 'GE')
SELECT COUNT(*) FROM patients WHERE EXTRACT(YEAR FROM born) < 1960
SELECT EXTRACT(MONTH FROM born) AS month, COUNT(*) FROM patients GROUP BY month
SELECT FLOOR(EXTRACT(YEAR FROM born) / 10.0) * 10 AS decade, COUNT(*) FROM patients GROUP BY decade
SELECT FLOOR(EXTRACT(YEAR FROM born) / 10) * 10 AS decade, COUNT(*) FROM patients GROUP BY decade
SELECT CAST(EXTRACT(YEAR FROM born) AS INTEGER) AS year, AVG(weight) AS w FROM patients GROUP BY year ORDER BY year
SELECT CASE WHEN weight < 55 THEN 'low' WHEN weight < 75 THEN 'mid' ELSE 'high' END AS band, COUNT(*) FROM patients GROUP BY 1
SELECT SUM(CASE WHEN weight > 70 THEN 1 ELSE 0 END) AS heavy, COUNT(*) AS n FROM patients
SELECT 100.0 * SUM(CASE WHEN canton = 'ZH' THEN 1 ELSE 0 END) / COUNT(*) AS share FROM patients
SELECT COUNT(*) FILTER (WHERE weight > 70) AS heavy FROM patients
SELECT SUBSTRING(canton, 1, 1) AS letter, COUNT(*) FROM patients GROUP BY letter
SELECT LEFT(canton, 1) AS letter, AVG(weight) FROM patients GROUP BY LEFT(canton, 1)
SELECT COUNT(*) FROM patients WHERE LENGTH(canton) = 2 AND canton || '-1' = 'ZH-1'
SELECT COUNT(*) FROM patients WHERE COALESCE(canton, 'none') = 'none'
SELECT AVG(COALESCE(weight, 60)) FROM patients
SELECT ROUND(AVG(weight), 1) AS w FROM patients
SELECT STDDEV(weight), VARIANCE(weight) FROM patients
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY weight) FROM patients
SELECT canton, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY weight) AS p FROM patients GROUP BY canton
SELECT COUNT(*) FROM patients WHERE born >= DATE '1960-01-01' AND born < DATE '1960-01-01' + INTERVAL '10' YEAR
SELECT COUNT(*) FROM patients WHERE DATE '2000-01-01' - born > 20000
SELECT AVG((DATE '2000-01-01' - born) / 365.25) AS age FROM patients
SELECT date_trunc('year', born) < DATE '1950-01-01' AS old, COUNT(*) FROM patients GROUP BY old
SELECT EXTRACT(QUARTER FROM born) AS quarter, canton, COUNT(*) FROM patients GROUP BY quarter, canton
SELECT canton, COUNT(*) FROM patients WHERE ward IS NOT NULL GROUP BY canton ORDER BY COUNT(*) DESC LIMIT 2
SELECT canton, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM patients) AS share FROM patients GROUP BY canton
SELECT canton, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM patients GROUP BY canton
SELECT AVG(n) FROM (SELECT canton, COUNT(*) AS n FROM patients GROUP BY canton) AS t
WITH big AS (SELECT canton, COUNT(*) AS n FROM patients GROUP BY canton) SELECT canton FROM big WHERE n > 5
SELECT canton, COUNT(*) FROM patients GROUP BY ROLLUP (canton)
SELECT COUNT(*) FROM (SELECT pid, weight * 1.1 AS w FROM patients WHERE canton IS NOT NULL) AS t WHERE w > 60
SELECT COUNT(*) FROM patients WHERE ABS(weight - 60) < 5 AND MOD(CAST(pid AS INTEGER), 2) = 0
SELECT COUNT(*) FROM patients WHERE SQRT(weight) > 7.5 AND POWER(weight, 2) < 8100 AND LN(weight) > 3
SELECT COUNT(*) FROM patients WHERE weight IS DISTINCT FROM 60 AND (weight > 60) IS TRUE
SELECT COUNT(*) FROM patients WHERE CAST(weight AS INTEGER) % 10 = 5
SELECT WIDTH_BUCKET(weight, 40, 100, 3) AS n, COUNT(*) FROM patients GROUP BY n
SELECT COUNT(*) FROM patients WHERE GREATEST(weight, 50) > 60 AND LEAST(weight, 90) < 80
SELECT COUNT(*) FROM patients WHERE POSITION('H' IN canton) = 2 AND REPLACE(canton, 'Z', 'B') = 'BH'
SELECT COUNT(DISTINCT pid) FROM diagnoses WHERE code = 'C18'
SELECT code, COUNT(DISTINCT pid) AS n FROM diagnoses GROUP BY code ORDER BY n DESC
SELECT LEFT(code, 1) AS chapter, COUNT(DISTINCT pid) FROM diagnoses WHERE cost > 10 GROUP BY chapter
SELECT COUNT(DISTINCT p.pid) FROM patients p JOIN diagnoses d ON p.pid = d.pid WHERE d.code LIKE 'C1%' AND p.weight > 50
SELECT p.canton, COUNT(DISTINCT p.pid) FROM patients p JOIN diagnoses d USING (pid) WHERE d.cost > 20 GROUP BY p.canton
SELECT p.canton, SUM(d.cost) FROM patients p INNER JOIN diagnoses d ON d.pid = p.pid GROUP BY p.canton
SELECT COUNT(DISTINCT p.pid) FROM patients p LEFT JOIN diagnoses d ON p.pid = d.pid WHERE d.code IS NULL
SELECT COUNT(*) FROM patients WHERE pid NOT IN (SELECT pid FROM diagnoses WHERE pid IS NOT NULL)
SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM treatments t WHERE t.patient = p.pid AND t.what = 'X')
SELECT COUNT(*) FROM patients WHERE pid IN (SELECT patient FROM treatments GROUP BY patient HAVING COUNT(*) >= 2)
SELECT kind, COUNT(DISTINCT pid) FROM patients p JOIN wards w ON p.ward = w.ward GROUP BY kind
SELECT w.kind, AVG(p.weight) FROM patients p JOIN wards w ON w.ward = p.ward WHERE w.floor < 2 GROUP BY w.kind
SELECT AVG(total) FROM (SELECT pid, SUM(cost) AS total FROM diagnoses GROUP BY pid) AS t
SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM diagnoses GROUP BY pid) AS t
SELECT COUNT(*) FROM (SELECT pid FROM diagnoses GROUP BY pid HAVING SUM(cost) > 50) AS t
SELECT n, COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM diagnoses GROUP BY pid) AS t GROUP BY n
SELECT COUNT(*) FROM (SELECT pid, MAX(cost) AS m, MIN(code) AS c FROM diagnoses GROUP BY pid) AS t WHERE m > 30 AND c = 'C18'
WITH t AS (SELECT pid, AVG(cost) AS a FROM diagnoses GROUP BY pid) SELECT COUNT(*) FROM t JOIN patients USING (pid) WHERE a > weight / 3.0
WITH first AS (SELECT pid, code, ROW_NUMBER() OVER (PARTITION BY pid ORDER BY cost DESC) AS r FROM diagnoses) SELECT code, COUNT(*) FROM first WHERE r = 1 GROUP BY code
SELECT COUNT(DISTINCT pid) FROM (SELECT pid, cost - LAG(cost) OVER (PARTITION BY pid ORDER BY cost) AS step FROM diagnoses) AS t WHERE step > 5
SELECT COUNT(DISTINCT who) FROM (SELECT pid AS who FROM diagnoses WHERE cost > 40 UNION ALL SELECT patient FROM treatments) AS u
SELECT COUNT(*) FROM (SELECT DISTINCT pid FROM diagnoses) AS d
SELECT COUNT(DISTINCT d.pid) FROM diagnoses d, treatments t WHERE d.pid = t.patient AND d.code = 'C18' AND t.what = 'Y'
SELECT canton, COUNT(DISTINCT CASE WHEN d.code = 'I10' THEN p.pid END) AS n FROM patients p JOIN diagnoses d USING (pid) GROUP BY canton
SELECT COUNT(DISTINCT p.pid) FROM patients p JOIN diagnoses d ON p.pid = d.pid JOIN treatments t ON t.patient = p.pid AND t.weight < d.cost
SELECT AVG(CASE WHEN EXTRACT(YEAR FROM born) < 1960 THEN 1.0 ELSE 0.0 END) AS share FROM patients
SELECT COUNT(*) FROM patients WHERE EXTRACT(DOW FROM born) IN (0, 6)
SELECT COUNT(*) FROM patients WHERE TRIM(canton) <> '' AND canton ~ 'Z'
SELECT COUNT(*) FROM patients WHERE NULLIF(weight, 60) IS NULL
SELECT COUNT(*) FROM patients WHERE CAST(born AS TEXT) LIKE '19%'
SELECT STRING_AGG(canton, ',') FROM patients
SELECT COUNT(*) FROM patients ORDER BY random()
SELECT * FROM patients
