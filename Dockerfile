FROM python:3.12-slim

ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    STREAMLIT_SERVER_HEADLESS=true \
    STREAMLIT_SERVER_ADDRESS=0.0.0.0 \
    STREAMLIT_SERVER_PORT=8501 \
    STREAMLIT_SERVER_FILE_WATCHER_TYPE=none

# 1000 is the user that a Docker Space runs as.
RUN useradd --create-home --uid 1000 explorer
WORKDIR /home/explorer/app

COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt

# Owned by root: the app reads its files and writes none.
COPY .streamlit .streamlit
COPY assets assets
COPY grpo_core grpo_core
COPY pages pages
COPY app.py LICENSE ./

USER explorer
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["streamlit", "run", "app.py"]
